#include "learn/estep/teach/append_target.h"

#include <utility>

#include "base/error.h"
#include "learn/estep/teach/segment_builder.h"

namespace rematch {

std::vector<PairTarget> pair_targets(const TargetInput& input, const TargetSettings& options) {
  std::vector<PairTarget> targets;
  for (const auto& [p, g] : input.matching.pairs) {
    const Geometry& predicted = input.parsed.objects.at(p).geometry;
    targets.push_back({p, g, coord_targets(predicted, input.ground_truth.at(g).geometry, options)});
  }
  return targets;
}

SegmentResult append_missing(const TargetInput& input, const std::vector<PairTarget>& targets,
                             const AnswerFormat& format) {
  const ParsedRollout& parsed = input.parsed;
  SegmentResult result;
  SegmentBuilder builder(input.prompt);
  builder.keep_prefix(parsed.prefix_token_ids);
  for (const PairTarget& target : targets) {
    if (!target.bins) {
      ++result.num_excluded;
      continue;
    }
    // The prefix keeps the response's ids, so positions in both are the same.
    const std::vector<TokenSpan>& tokens = parsed.objects.at(target.prediction).coord_tokens;
    REMATCH_CHECK(target.bins->size() == tokens.size());
    for (size_t slot = 0; slot < tokens.size(); ++slot)
      builder.teach_in_prefix(tokens[slot].begin, (*target.bins)[slot]);
    result.pairs.emplace_back(target.prediction, target.ground_truth);
  }
  result.num_supervised_pairs = static_cast<int>(result.pairs.size());
  result.false_negatives = missing_indices(result.pairs, input.ground_truth.size());
  Objects missing;
  for (const int g : result.false_negatives) missing.push_back(input.ground_truth[g]);
  TaughtAnswer append = format.teach_rest(parsed, missing);
  result.append_text = std::move(append.text);
  result.segment = builder.finish(append.tokens, format.im_end_id());
  return result;
}

SegmentResult append_target(const TargetInput& input, const AnswerFormat& format,
                            const TargetSettings& options) {
  return append_missing(input, pair_targets(input, options), format);
}

}  // namespace rematch
