#include "estep/target/truth_segment.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "estep/target/segment_builder.h"
#include "estep/target/serialize.h"

namespace rematch {
namespace {

// Keeps this stream apart from the others that are keyed by the same seed, epoch and sample.
constexpr uint64_t kNoiseStream = 0x6E6F697365ULL;

void add_noise(std::vector<AnswerEntry>& entries, const Prompt& prompt, const InputNoise& noise) {
  const uint64_t key = random_key({kNoiseStream, noise.seed, static_cast<uint64_t>(prompt.epoch),
                                   static_cast<uint64_t>(prompt.sample_id)});
  uint64_t slot = 0;
  for (AnswerEntry& entry : entries) {
    for (int& bin : entry.shown.geometry.bins) {
      const double moved = std::nearbyint(bin + noise.sigma_bins * random_normal(key, slot++));
      bin = static_cast<int>(std::clamp(moved, 0.0, static_cast<double>(kNumBins - 1)));
    }
  }
}

}  // namespace

Segment answer_segment(const Prompt& prompt, const std::vector<AnswerEntry>& entries,
                       const AnswerVocab& vocab, std::string* text) {
  std::vector<SceneObject> shown;
  std::vector<TaughtToken> slots;
  for (const AnswerEntry& entry : entries) {
    shown.push_back(entry.shown);
    for (const int bin : entry.taught_bins) slots.push_back({.bin = bin, .source = entry.source});
  }
  const AnswerText answer = answer_text(shown);
  if (text != nullptr) *text = answer.text;
  const EncodedAnswer encoded = encode_answer(answer, *vocab.tokenizer);
  std::vector<TaughtToken> tokens;
  size_t next_slot = 0;
  for (size_t i = 0; i < encoded.token_ids.size(); ++i) {
    const TokenId id = encoded.token_ids[i];
    TaughtToken token;
    if (vocab.coord_vocab->bin_of(id) < 0) {
      token.text = true;
    } else if (!encoded.in_desc[i]) {
      REMATCH_CHECK(next_slot < slots.size(),
                    fmt::format("more than {} coord tokens", slots.size()));
      token = slots[next_slot++];
    }
    token.id = id;
    tokens.push_back(token);
  }
  REMATCH_CHECK(next_slot == slots.size(),
                fmt::format("{} coord tokens for {} bins", next_slot, slots.size()));
  return SegmentBuilder(prompt).finish(tokens, vocab.im_end_id);
}

Segment build_ground_truth_segment(const Prompt& prompt, const std::vector<SceneObject>& objects,
                                   const AnswerVocab& vocab, const InputNoise& noise) {
  std::vector<AnswerEntry> entries;
  for (const SceneObject& object : objects)
    entries.push_back({.shown = object, .taught_bins = object.geometry.bins});
  if (noise.sigma_bins > 0) add_noise(entries, prompt, noise);
  return answer_segment(prompt, entries, vocab);
}

}  // namespace rematch
