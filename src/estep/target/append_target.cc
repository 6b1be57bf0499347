#include "estep/target/append_target.h"

#include <fmt/core.h>

#include "base/error.h"
#include "estep/target/segment_builder.h"
#include "estep/target/serialize.h"

namespace rematch {
namespace {

std::vector<TaughtToken> taught(const EncodedAnswer& answer, const CoordVocab& coords) {
  std::vector<TaughtToken> tokens;
  for (size_t i = 0; i < answer.token_ids.size(); ++i) {
    const TokenId id = answer.token_ids[i];
    const int bin = coords.bin_of(id);
    tokens.push_back(
        {.id = id, .text = bin < 0 && !answer.in_desc[i], .bin = answer.in_desc[i] ? -1 : bin});
  }
  return tokens;
}

}  // namespace

std::vector<PairTarget> pair_targets(const TargetInput& input, const TargetSettings& options) {
  std::vector<PairTarget> targets;
  for (const auto& [p, g] : input.matching.pairs) {
    const Geometry& predicted = input.parsed.objects.at(static_cast<size_t>(p)).geometry;
    targets.push_back(
        {p, g,
         coord_targets(predicted, input.ground_truth.at(static_cast<size_t>(g)).geometry,
                       options)});
  }
  return targets;
}

SegmentResult append_missing(const TargetInput& input, const std::vector<PairTarget>& targets,
                             const AnswerVocab& vocab) {
  const ParsedRollout& parsed = input.parsed;
  SegmentResult result;
  SegmentBuilder builder(input.prompt);
  builder.keep_prefix(parsed.prefix_token_ids);
  for (const PairTarget& target : targets) {
    if (!target.bins) {
      ++result.num_excluded;
      continue;
    }
    // Kept ids are the response's own, so a position in the response is one in the prefix.
    const std::vector<int>& tokens =
        parsed.objects.at(static_cast<size_t>(target.prediction)).coord_token_indices;
    REMATCH_CHECK(target.bins->size() == tokens.size(),
                  fmt::format("{} {}", target.bins->size(), tokens.size()));
    for (size_t slot = 0; slot < tokens.size(); ++slot)
      builder.teach_in_prefix(tokens[slot], (*target.bins)[slot]);
    result.pairs.emplace_back(target.prediction, target.ground_truth);
  }
  result.num_supervised_pairs = static_cast<int>(result.pairs.size());
  result.false_negatives = missing_indices(result.pairs, input.ground_truth.size());
  std::vector<SceneObject> missing;
  for (const int g : result.false_negatives)
    missing.push_back(input.ground_truth[static_cast<size_t>(g)]);
  const int64_t first_index = parsed.max_object_index ? *parsed.max_object_index + 1 : 1;
  const AnswerText append = append_text(missing, first_index, !parsed.prefix_text.ends_with('{'));
  result.append_text = append.text;
  result.segment = builder.finish(
      taught(encode_answer(append, *vocab.tokenizer), *vocab.coord_vocab), vocab.im_end_id);
  return result;
}

SegmentResult append_target(const TargetInput& input, const AnswerVocab& vocab,
                            const TargetSettings& options) {
  return append_missing(input, pair_targets(input, options), vocab);
}

}  // namespace rematch
