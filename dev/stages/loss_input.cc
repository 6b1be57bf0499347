#include "loss_input.h"

#include <fmt/core.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "learn/mstep/loss/loss_table.h"

namespace rematch {
namespace {

[[noreturn]] void fail(const std::string& where, const std::string& error, const std::string& found,
                       const std::string& fix) {
  throw UserError(ErrorKind::kData, {.error = error, .where = where, .what = found, .fix = fix});
}

std::vector<int> read_labels(JsonFields& fields, const std::string& what, int64_t vocab_size,
                             size_t num_tokens) {
  const std::vector<int> labels = fields.integers("labels");
  const std::string where = what + ".labels";
  if (labels.size() != num_tokens) {
    fail(where, "labels and tokens differ in number",
         fmt::format("{} labels, {} tokens", labels.size(), num_tokens),
         "pass one label for each token");
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == kIgnoreLabel) continue;
    if (labels[i] < 0 || labels[i] >= vocab_size) {
      fail(where, "a label is outside the vocabulary",
           fmt::format("label {} at position {}, vocabulary of {}", labels[i], i, vocab_size),
           fmt::format("pass {} where there is no label, else a token id", kIgnoreLabel));
    }
    if (i == 0)
      fail(where, "the first position cannot be supervised",
           fmt::format("label {} at position 0", labels[i]),
           fmt::format("its logits would come from the position before; set it to {}",
                       kIgnoreLabel));
  }
  return labels;
}

Slot read_slot(const Json& item, const std::string& kind, const std::string& where,
               size_t num_tokens) {
  const bool has_shape = item.is_array() && item.size() == 3 && item[0].is_number_integer() &&
                         item[1].is_number_integer() && item[2].is_string();
  const std::string found = show_json(item);
  if (!has_shape)
    fail(where, fmt::format("a {} slot has an invalid shape", kind), found,
         "pass [position, target, \"prefix\" or \"append\"]");
  const auto position = item[0].get<double>();  // as double: an unsigned beyond int64 must not wrap
  const auto target = item[1].get<double>();
  const auto source = item[2].get<std::string>();
  if (!(position >= 1 && position < static_cast<double>(num_tokens))) {
    fail(where, fmt::format("a {} slot lies outside the row", kind),
         fmt::format("{}, {} tokens", found, num_tokens),
         "pass a position from 1 to the last token");
  }
  const double limit = kind == kCoordSlots ? kNumBins : std::numeric_limits<int>::max();
  if (!(target >= 0 && target < limit)) {
    fail(where, fmt::format("a {} slot has an invalid target", kind), found,
         fmt::format("pass an integer from 0 to {:.0f}", limit - 1));
  }
  if (source != "prefix" && source != "append") {
    fail(where, fmt::format("a {} slot has an invalid source", kind), found,
         "pass \"prefix\" or \"append\"");
  }
  return {static_cast<int>(position), static_cast<int>(target),
          source == "prefix" ? SlotSource::kPrefix : SlotSource::kAppend};
}

// Refuses what check_supervision() refuses: a token has one target of a kind, and a coord slot no
// label.
void check_one_target(const Segment& segment, const std::string& kind, const std::string& where) {
  std::set<int> taken;
  for (const Slot& slot : segment.slots_of(kind)) {
    if (!taken.insert(slot.position).second) {
      fail(where, fmt::format("two {} slots share a position", kind),
           fmt::format("position {}", slot.position), "pass one slot for it");
    }
    const int label = segment.labels[static_cast<size_t>(slot.position)];
    if (kind == kCoordSlots && label != kIgnoreLabel) {
      fail(where, "a position has a label and a coord slot",
           fmt::format("label {} at position {}", label, slot.position),
           fmt::format("set its label to {}, or leave the slot out", kIgnoreLabel));
    }
  }
}

}  // namespace

void read_supervision(JsonFields& fields, const std::string& what, int64_t vocab_size,
                      Segment& segment) {
  segment.labels = read_labels(fields, what, vocab_size, segment.token_ids.size());
  for (const LossTerm& term : loss_terms()) {
    if (term.kind == kLabels || segment.slots.count(term.kind) > 0) continue;
    const std::string key = term.kind + "_slots";
    const Json* slots = fields.find(key);
    if (slots == nullptr) continue;
    const std::string where = what + "." + key;
    if (!slots->is_array())
      fail(where, key + " has an invalid value", slots->type_name(),
           "pass a list of [position, target, source]");
    for (const Json& item : *slots)
      segment.slots[term.kind].push_back(
          read_slot(item, term.kind, where, segment.token_ids.size()));
    check_one_target(segment, term.kind, where);
  }
}

std::array<TokenId, 1000> read_coord_token_ids(JsonFields& fields, int64_t vocab_size) {
  const std::vector<int> given = fields.integers("coord_token_ids");
  const std::string where = "input.coord_token_ids";
  std::array<TokenId, 1000> ids{};
  if (given.size() != ids.size())
    fail(where, "there must be 1000 coord tokens", fmt::format("{} ids", given.size()),
         "pass the ids of bins 0 to 999");
  for (size_t bin = 0; bin < ids.size(); ++bin) {
    if (given[bin] < 0 || given[bin] >= vocab_size) {
      fail(where, "a coord token is outside the vocabulary",
           fmt::format("id {} of bin {}, vocabulary of {}", given[bin], bin, vocab_size),
           "pass ids below the width of the logits");
    }
    ids[bin] = given[bin];
  }
  const std::set<int> distinct(ids.begin(), ids.end());
  if (distinct.size() != ids.size()) {
    fail(where, "two bins share a coord token", fmt::format("{} distinct ids", distinct.size()),
         "pass 1000 distinct ids");
  }
  return ids;
}

LossOptions read_loss_options(JsonFields reader) {
  LossOptions options;
  for (const LossKey& key : loss_keys()) {
    if (!reader.has(key.name)) continue;
    const double number = reader.number(key.name);
    if (number < key.low || (key.excludes_low && number == key.low)) {
      throw UserError(ErrorKind::kConfig,
                      {.error = fmt::format("{} is out of range", key.name),
                       .where = fmt::format("options.{}", key.name),
                       .what = fmt::format("{}", number),
                       .fix = fmt::format("pass a number {} {}",
                                          key.excludes_low ? "above" : "from", key.low)});
    }
    options.settings[key.name] = number;
  }
  reader.finish();
  return options;
}

}  // namespace rematch
