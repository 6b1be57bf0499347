#include "learn/estep/teach/segment_checks.h"

#include <fmt/core.h>

#include <algorithm>

namespace rematch {
namespace {

constexpr const char* kNothingBefore =
    "no position before it gives its logits; the prompt is empty";
constexpr const char* kFixEmpty = "give the ids of the prompt";
constexpr const char* kFix =
    "supervise each token of the assistant's answer at most once, by its own id or by a bin";

std::string id_at(const std::vector<TokenId>& ids, size_t position) {
  return position < ids.size() ? fmt::format("id {}", ids[position]) : std::string("its end");
}

}  // namespace

void check_prompt_ids(const std::vector<TokenId>& ours, const std::vector<TokenId>& theirs,
                      const std::string& backend, const std::string& where) {
  if (ours == theirs) return;
  const auto position = static_cast<size_t>(
      std::mismatch(ours.begin(), ours.end(), theirs.begin(), theirs.end()).first - ours.begin());
  throw data_error(
      {.error = fmt::format("the prompt that {} used differs from the encoded one at position {}",
                            backend, position),
       .where = where.empty() ? "prompt" : where,
       .what = fmt::format("encoded: {}, {}: {} (lengths {} and {})", id_at(ours, position),
                           backend, id_at(theirs, position), ours.size(), theirs.size()),
       .fix = "use the same tokenizer, chat template and image size for both, or use "
              "`rollout_backend: hf`"});
}

void check_supervision(const Segment& segment) {
  const auto refuse = [&](int position, const std::string& why, const char* fix = kFix) {
    throw data_error(
        {.error = fmt::format("position {} of a segment cannot be supervised: {}", position, why),
         .where = sample_name(segment.sample_id, segment.where),
         .what = fmt::format("prompt_len {}, encoded_len {}", segment.prompt_len,
                             segment.encoded_len()),
         .fix = fix});
  };
  const int length = segment.encoded_len();
  if (static_cast<int>(segment.labels.size()) != length) {
    refuse(static_cast<int>(segment.labels.size()), "labels and token_ids differ in length");
  }
  for (int position = 0; position < length; ++position) {
    const int label = segment.labels[position];
    if (label == kIgnoreLabel) continue;
    if (position < segment.prompt_len) refuse(position, "it is before the assistant span");
    if (position == 0) refuse(position, kNothingBefore, kFixEmpty);
    if (label < 0) refuse(position, fmt::format("{} is not a token", label));
    // Only formats with digits have labels that differ from the token.
    if (label != segment.token_ids[position] && !segment.slots_of(kCoordSlots).empty())
      refuse(position, "its label is not its token");
  }
  for (const auto& [kind, slots] : segment.slots) {
    int last = -1;
    for (const Slot& slot : slots) {
      if (slot.position < segment.prompt_len || slot.position >= length)
        refuse(slot.position, "it is outside the assistant span");
      if (slot.position == 0) refuse(slot.position, kNothingBefore, kFixEmpty);
      if (slot.position <= last) refuse(slot.position, fmt::format("{} slots must ascend", kind));
      last = slot.position;
      if (slot.target < 0)
        refuse(slot.position, fmt::format("{} is not a target of a {} slot", slot.target, kind));
      if (kind != kCoordSlots) continue;
      if (slot.target >= kNumBins)
        refuse(slot.position, fmt::format("bin {} is not in 0..999", slot.target));
      if (segment.labels[slot.position] != kIgnoreLabel)
        refuse(slot.position, "it has a label and a coord slot");
    }
  }
}

void check_encoded_len(const Segment& segment, int cap_tokens) {
  if (cap_tokens <= 0 || segment.encoded_len() <= cap_tokens) return;
  throw SegmentTooLong(
      ErrorKind::kData,
      {.error = "a segment is longer than global_max_length",
       .where = sample_name(segment.sample_id, segment.where),
       .what = fmt::format("encoded_len {} (prompt {}, prefix {}, append {}, end 1), cap {}",
                           segment.encoded_len(), segment.prompt_len, segment.prefix_len,
                           segment.append_len, cap_tokens),
       .fix = "raise `global_max_length`, lower `max_new_tokens` (stage 2), set `training.packing: "
              "false` if the cap is "
              "only needed for packing, or resume with `data.on_bad_sample: skip` to leave such "
              "samples out"});
}

}  // namespace rematch
