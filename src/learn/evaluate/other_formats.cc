#include "learn/evaluate/other_formats.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/terminal_text.h"
#include "learn/estep/match/match_policy.h"

namespace rematch {
namespace {

constexpr size_t kMostTried = 50;
constexpr size_t kMostObjects = 500;  ///< of an answer: matching them takes their square
constexpr int64_t kFewestMatches = 5;

/// Number of keys that begin so; `"label": "object_1"` has none.
int64_t count_keys(const std::string& text, const std::string& begin) {
  int64_t count = 0;
  for (size_t at = text.find(begin); at != text.npos; at = text.find(begin, at + 1))
    count += text[text.find_last_not_of(" \n", at - 1)] != ':';
  return count;
}

}  // namespace

void OtherFormats::add(const ScoredRollout& answer) {
  std::string text = tokenizer_->decode_bytes(answer.rollout.response_token_ids);
  // Counts keys after a think block only; the brace stands before a key that begins the text.
  text.replace(0, text.rfind("</think>") + 1, "{");
  const int64_t num_outside = count_keys(text, '"' + answer_formats().find(name_).entry_key) -
                              std::ssize(answer.parsed.objects);  // or dropped
  num_dropped_ +=
      std::max<int64_t>(answer.parsed.dropped_invalid,
                        answer.parsed.status == ParseStatus::kComplete ? num_outside : 0);
  const bool is_read =
      answer.parsed.dropped_invalid == 0 && answer.parsed.status != ParseStatus::kMalformed;
  if (!is_read && unread_.size() < kMostTried) unread_.push_back(answer);
  if (first_.size() < kMostTried) first_.push_back(answer);
}

OtherFormats::Found OtherFormats::find(const std::string& name) const {
  const auto format = make_answer_format(name, tokenizer_, name);
  const auto read = [&](const ScoredRollout& answer) {
    return format->parse(answer.rollout.response_token_ids, options_.stop_ids, answer.prompt)
        .objects;
  };
  Found found;
  for (const ScoredRollout& answer : unread_) found.objects += std::ssize(read(answer));
  for (const ScoredRollout& answer : first_) {
    Objects objects = to_scene(read(answer));
    objects.resize(std::min(objects.size(), kMostObjects));
    found.matches += std::ssize(match_objects(objects, answer.ground_truth, options_.match).pairs);
  }
  return found;
}

void OtherFormats::warn(Terminal& terminal) const {
  if (num_dropped_ > 0)
    terminal.warn(fmt::format(
        "{} of the answers {} not count: without a name where {} has names, with numbers that are "
        "not whole or beyond its scale, or outside the list that is read",
        counted(num_dropped_, "entry", "entries"), num_dropped_ == 1 ? "does" : "do", name_));
  const Found own = find(name_);
  std::string unit;
  for (const std::string& name : answer_formats().names()) {
    const Found found = name == name_ ? own : find(name);
    if (found.objects > own.objects)
      return terminal.warn(fmt::format("--format {} reads {} in {} that --format {} reads {} in",
                                       name, counted(found.objects, "object"),
                                       counted(std::ssize(unread_), "answer"), name_, own.objects));
    if (unit.empty() && found.matches >= kFewestMatches && found.matches > 2 * own.matches)
      unit = fmt::format(
          "in the first {} --format {} finds {} of the truth and --format {} finds {}: are the "
          "numbers in the unit of {}?",
          counted(std::ssize(first_), "answer"), name, counted(found.matches, "object"), name_,
          own.matches, name);
  }
  if (!unit.empty()) terminal.warn(unit);
}

}  // namespace rematch
