#include "estep/target/target_builder.h"

#include <fmt/core.h>

#include "base/error.h"
#include "estep/target/segment_checks.h"
#include "estep/target/serialize.h"

namespace rematch {
namespace {

Segment start_segment(const Prompt& prompt) {
  Segment segment;
  segment.sample_id = prompt.sample_id;
  segment.token_ids = prompt.token_ids;
  segment.images = prompt.images;
  segment.prompt_len = static_cast<int>(prompt.token_ids.size());
  segment.where = prompt.where;
  return segment;
}

// What happens to the tokens of descriptions.
enum class DescTeaching { kTaught, kLeftOut };

// Appends the answer with its supervision, and <|im_end|>.
void finish_segment(const EncodedAnswer& answer, DescTeaching desc_teaching, const AnswerVocab& vocab, Segment& segment) {
  segment.labels.resize(segment.token_ids.size(), kIgnoreLabel);
  segment.append_len = static_cast<int>(answer.token_ids.size());
  for (size_t i = 0; i < answer.token_ids.size(); ++i) {
    const TokenId id = answer.token_ids[i];
    const int bin = vocab.coord_vocab->bin_of(id);
    const bool left_out = answer.in_desc[i] && desc_teaching == DescTeaching::kLeftOut;
    if (bin >= 0 && !answer.in_desc[i]) segment.add_slot(kCoordSlots, {segment.encoded_len(), bin, SlotSource::kAppend});
    segment.token_ids.push_back(id);
    segment.labels.push_back(bin >= 0 || left_out ? kIgnoreLabel : id);
  }
  segment.token_ids.push_back(vocab.im_end_id);
  segment.labels.push_back(vocab.im_end_id);
  check_supervision(segment);
}

void add_prefix_slots(const ParsedObject& object, const std::vector<int>& bins, Segment& segment) {
  REMATCH_CHECK(bins.size() == object.coord_token_indices.size(), fmt::format("{} {}", bins.size(), object.coord_token_indices.size()));
  for (size_t slot = 0; slot < bins.size(); ++slot) {
    // Kept ids are the response's own, so a position in the response is one in the prefix.
    const int token = object.coord_token_indices[slot];
    REMATCH_CHECK(token < segment.prefix_len, fmt::format("coord token {} behind the prefix of {}", token, segment.prefix_len));
    segment.add_slot(kCoordSlots, {segment.prompt_len + token, bins[slot], SlotSource::kPrefix});
  }
}

std::vector<int> missing_indices(const std::vector<std::pair<int, int>>& pairs, size_t num_ground_truth) {
  std::vector<bool> present(num_ground_truth, false);
  for (const auto& pair : pairs) present[static_cast<size_t>(pair.second)] = true;
  std::vector<int> missing;
  for (size_t i = 0; i < num_ground_truth; ++i) {
    if (!present[i]) missing.push_back(static_cast<int>(i));
  }
  return missing;
}

}  // namespace

std::vector<PairTarget> pair_targets(const ParsedRollout& parsed, const Matching& matching, const std::vector<SceneObject>& ground_truth,
                                     const TargetSettings& options) {
  check_target_options(options);
  std::vector<PairTarget> targets;
  for (const auto& [p, g] : matching.pairs) {
    const Geometry& predicted = parsed.objects.at(static_cast<size_t>(p)).geometry;
    targets.push_back({p, g, coord_targets(predicted, ground_truth.at(static_cast<size_t>(g)).geometry, options)});
  }
  return targets;
}

SegmentResult assemble_segment(const Prompt& prompt, const ParsedRollout& parsed, const std::vector<PairTarget>& targets,
                               const std::vector<SceneObject>& ground_truth, const AnswerVocab& vocab) {
  SegmentResult result;
  Segment& segment = result.segment;
  segment = start_segment(prompt);
  segment.prefix_len = static_cast<int>(parsed.prefix_token_ids.size());
  segment.token_ids.insert(segment.token_ids.end(), parsed.prefix_token_ids.begin(), parsed.prefix_token_ids.end());
  for (const PairTarget& target : targets) {
    if (target.bins) {
      add_prefix_slots(parsed.objects.at(static_cast<size_t>(target.prediction)), *target.bins, segment);
      result.pairs.emplace_back(target.prediction, target.ground_truth);
    } else {
      ++result.num_excluded;
    }
  }
  result.false_negatives = missing_indices(result.pairs, ground_truth.size());
  std::vector<SceneObject> missing;
  for (const int g : result.false_negatives) missing.push_back(ground_truth[static_cast<size_t>(g)]);
  const int64_t first_index = parsed.max_object_index ? *parsed.max_object_index + 1 : 1;
  const bool after_entry = !parsed.prefix_text.ends_with('{');
  const AnswerText append = append_text(missing, first_index, after_entry);
  result.append_text = append.text;
  finish_segment(encode_answer(append, *vocab.tokenizer), DescTeaching::kLeftOut, vocab, segment);
  return result;
}

SegmentResult build_segment(const Prompt& prompt, const ParsedRollout& parsed, const Matching& matching,
                            const std::vector<SceneObject>& ground_truth, const AnswerVocab& vocab, const TargetSettings& options) {
  return assemble_segment(prompt, parsed, pair_targets(parsed, matching, ground_truth, options), ground_truth, vocab);
}

Segment build_ground_truth_segment(const Prompt& prompt, const std::vector<SceneObject>& objects, const AnswerVocab& vocab) {
  Segment segment = start_segment(prompt);
  finish_segment(encode_answer(answer_text(objects), *vocab.tokenizer), DescTeaching::kTaught, vocab, segment);
  return segment;
}

}  // namespace rematch
