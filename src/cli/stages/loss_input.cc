#include "cli/stages/loss_input.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"

namespace rematch {
namespace {

[[noreturn]] void fail(const std::string& where, const std::string& error, const std::string& found, const std::string& fix) {
  throw UserError(ErrorKind::kData, {.error = error, .where = where, .what = found, .fix = fix});
}

std::vector<int> read_labels(JsonFields& fields, const std::string& what, int64_t vocab_size, size_t num_tokens) {
  const std::vector<int> labels = fields.integers("labels");
  const std::string where = what + ".labels";
  if (labels.size() != num_tokens) {
    fail(where, "labels and tokens differ in number", fmt::format("{} labels, {} tokens", labels.size(), num_tokens),
         "pass one label for each token");
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == kIgnoreLabel) continue;
    if (labels[i] < 0 || labels[i] >= vocab_size) {
      fail(where, "a label is outside the vocabulary", fmt::format("label {} at position {}, vocabulary of {}", labels[i], i, vocab_size),
           fmt::format("pass {} where there is no label, else a token id", kIgnoreLabel));
    }
    if (i == 0)
      fail(where, "the first position cannot be supervised", fmt::format("label {} at position 0", labels[i]),
           fmt::format("its logits would come from the position before; set it to {}", kIgnoreLabel));
  }
  return labels;
}

CoordSlot read_slot(const Json& item, const std::string& where, size_t num_tokens) {
  const bool has_shape =
      item.is_array() && item.size() == 3 && item[0].is_number_integer() && item[1].is_number_integer() && item[2].is_string();
  const std::string found = shown_json(item);
  if (!has_shape) fail(where, "a coord slot has a wrong shape", found, "give [position, bin, \"prefix\" or \"append\"]");
  const auto position = item[0].get<double>();  // as double: an unsigned beyond int64 must not wrap
  const auto bin = item[1].get<double>();
  const auto source = item[2].get<std::string>();
  if (!(position >= 1 && position < static_cast<double>(num_tokens))) {
    fail(where, "a coord slot lies outside the row", fmt::format("{}, {} tokens", found, num_tokens),
         "pass a position from 1 to the last token");
  }
  if (!(bin >= 0 && bin < kNumBins)) fail(where, "a coord slot has an invalid bin", found, "pass a bin from 0 to 999");
  if (source != "prefix" && source != "append") fail(where, "a coord slot has an invalid source", found, "pass \"prefix\" or \"append\"");
  return {static_cast<int>(position), static_cast<int>(bin), source == "prefix" ? SlotSource::kPrefix : SlotSource::kAppend};
}

double positive(JsonFields& reader, const std::string& key, double fallback) {
  const double value = reader.number_or(key, fallback);
  if (value > 0) return value;
  throw UserError(ErrorKind::kConfig, {.error = fmt::format("{} must be positive", key),
                                       .where = "options." + key,
                                       .what = fmt::format("{}", value),
                                       .fix = fmt::format("pass a number above 0, e.g. {}", fallback)});
}

}  // namespace

void read_supervision(JsonFields& fields, const std::string& what, int64_t vocab_size, Segment& segment) {
  segment.labels = read_labels(fields, what, vocab_size, segment.token_ids.size());
  const Json* slots = fields.find("coord_slots");
  if (slots == nullptr) return;
  const std::string where = what + ".coord_slots";
  if (!slots->is_array()) fail(where, "coord_slots has an invalid value", slots->type_name(), "pass a list of [position, bin, source]");
  for (const Json& item : *slots) segment.coord_slots.push_back(read_slot(item, where, segment.token_ids.size()));
}

std::array<TokenId, 1000> read_coord_token_ids(JsonFields& fields, int64_t vocab_size) {
  const std::vector<int> given = fields.integers("coord_token_ids");
  const std::string where = "input.coord_token_ids";
  std::array<TokenId, 1000> ids{};
  if (given.size() != ids.size())
    fail(where, "there must be 1000 coord tokens", fmt::format("{} ids", given.size()), "pass the ids of bins 0 to 999");
  for (size_t bin = 0; bin < ids.size(); ++bin) {
    if (given[bin] < 0 || given[bin] >= vocab_size) {
      fail(where, "a coord token is outside the vocabulary", fmt::format("id {} of bin {}, vocabulary of {}", given[bin], bin, vocab_size),
           "pass ids below the width of the logits");
    }
    ids[bin] = given[bin];
  }
  const std::set<int> distinct(ids.begin(), ids.end());
  if (distinct.size() != ids.size()) {
    fail(where, "two bins share a coord token", fmt::format("{} distinct ids", distinct.size()), "pass 1000 distinct ids");
  }
  return ids;
}

LossOptions read_loss_options(JsonFields reader) {
  LossOptions options;
  options.soft_ce_weight = reader.number_or("soft_ce_weight", options.soft_ce_weight);
  options.w1_weight = reader.number_or("w1_weight", options.w1_weight);
  options.gate_weight = reader.number_or("gate_weight", options.gate_weight);
  options.temperature_coord = positive(reader, "temperature_coord", options.temperature_coord);
  options.target_sigma = positive(reader, "target_sigma", options.target_sigma);
  const Json* truncate = reader.find("target_truncate");
  if (truncate != nullptr && !truncate->is_null()) {
    options.target_truncate = reader.number_or("target_truncate", 0);
    if (*options.target_truncate < 0) {
      throw UserError(ErrorKind::kConfig, {.error = "target_truncate must not be negative",
                                           .where = "options.target_truncate",
                                           .what = fmt::format("{}", *options.target_truncate),
                                           .fix = "pass a number of bins from 0, or null"});
    }
  }
  reader.finish();
  return options;
}

}  // namespace rematch
