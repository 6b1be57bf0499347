#include "tools/import/ledger.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/terminal_text.h"
#include "base/text.h"

namespace rematch {
namespace {

std::vector<std::pair<std::string, Loss>> ranked(const Losses& losses) {
  std::vector<std::pair<std::string, Loss>> rows(losses.begin(), losses.end());
  std::ranges::stable_sort(rows, std::greater{}, [](const auto& row) { return row.second.count; });
  return rows;
}

}  // namespace

std::string reason::text_of(const std::string& reason) {
  return reason.substr(0, reason.find('|'));
}

std::string reason::fix_for(const std::string& reason) {
  const size_t bar = reason.find('|');
  return bar == reason.npos ? "" : reason.substr(bar + 1);
}

void Ledger::add(Losses& losses, const std::string& reason, const std::string& place) {
  Loss& loss = losses[reason];
  if (loss.count++ == 0) loss.first = place;
}

void Ledger::attempt(const std::string& where, const std::function<void()>& read) {
  try {
    read();
  } catch (const LeftOut& left_out) {
    lose_record(left_out.reason, where + (left_out.what.empty() ? "" : ": " + left_out.what));
  }
}

std::string Ledger::list(const Losses& losses) {
  Losses by_text;  // whose fixes differ
  for (const auto& [reason, loss] : losses) by_text[reason::text_of(reason)].count += loss.count;
  Strings counts;
  for (const auto& [reason, loss] : ranked(by_text))
    counts.push_back(fmt::format("{} × {}", loss.count, reason));
  return join(counts, ", ");
}

std::string Ledger::summary(int64_t num_kept) const {
  Strings parts;
  if (num_records_lost_ > 0)
    parts.push_back(fmt::format("left out {} of {}: {}", num_records_lost_,
                                counted(num_records_lost_ + num_kept, "record"), list(records_)));
  if (num_objects_lost_ > 0)
    parts.push_back(fmt::format("left out {} of records that were kept: {}",
                                counted(num_objects_lost_, "object"), list(objects_)));
  return join(parts, "; ");
}

Strings Ledger::places() const {
  Strings places;
  for (const Losses* losses : {&records_, &objects_}) {
    for (const auto& [reason, loss] : ranked(*losses)) {
      if (!loss.first.empty())
        places.push_back(fmt::format("{} ({})", loss.first, reason::text_of(reason)));
    }
  }
  return places;
}

std::string Ledger::fix() const {
  std::string fix = fix_of(records_, "correct or remove these records");
  if (num_keepable_ == 0) return fix;
  return fmt::format(
      "{}; --drop-unreadable keeps {} of them without the objects that cannot be read", fix,
      num_keepable_);
}

std::string Ledger::fix_of(const Losses& losses, const std::string& otherwise) {
  Strings fixes;
  for (const auto& [reason, loss] : ranked(losses)) {
    const std::string fix = reason::fix_for(reason);
    if (!fix.empty() && fixes.size() < 2) fixes.push_back(fix);
  }
  return fixes.empty() ? otherwise : join(fixes, "; ");
}

}  // namespace rematch
