#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "data/dataset.h"
#include "data/ordering.h"
#include "estep/answer/answer_format.h"
#include "estep/match/labels.h"
#include "estep/match/matcher.h"
#include "flow/parsed.h"
#include "flow/rollout.h"
#include "settings/augment.h"
#include "text/prompt.h"
#include "vision/pixel_store.h"

namespace rematch {

/// One sample on its way: prompt and truth first, then rollout, parse and matching.
struct ScoredRollout {
  const Sample* sample = nullptr;         ///< as the data set has it, without augmentation
  std::vector<SceneObject> ground_truth;  ///< in the order of numbering
  Prompt prompt;
  Rollout rollout;
  ParsedRollout parsed;
  std::vector<double> scores;  ///< of parsed.objects (BEHAVIOUR 20.2); empty = the backend has none
  Matching matching;
};

/// The prompt of a sample, image pads expanded. @param epoch  part of the key of sampling
/// randomness
Prompt make_prompt(const Sample& sample, int64_t epoch, const PromptEncoder& prompts,
                   const PatchOptions& patches);

/// Prompts for the samples of a data set; parses and matches what an engine answered. Training,
/// evaluation, probe and `rematch rollout` use these same steps.
class RolloutScorer {
 public:
  struct Options {
    MatchSettings match;
    LabelMatch labels;
    ObjectOrdering ordering = ObjectOrdering::kSorted;
    uint64_t seed = 42;
    AugmentSettings augment;  ///< off where nothing is trained
    PatchOptions patches;
    std::vector<TokenId> stop_ids;
    std::string backend;  ///< name of the engine, for errors
  };
  /// All parts outlive the scorer.
  RolloutScorer(const Dataset& dataset, const PromptEncoder& prompts, const AnswerFormat& format,
                PixelStore& pixels, Options options);

  /// Starts loading the images of samples that will be rolled out soon.
  void prefetch(const std::vector<int64_t>& sample_indices, int64_t epoch) const;
  /// Prompts and truths of samples, in the order given. @param sample_indices  into
  /// dataset.samples()
  std::vector<ScoredRollout> prepare(const std::vector<int64_t>& sample_indices,
                                     int64_t epoch) const;
  /// Reads the rollout strictly (BEHAVIOUR 5). @throws UserError when the backend used a different
  /// prompt (the specification's sanity check)
  void parse(ScoredRollout& one, MetricsBag& metrics) const;
  /// Pairs the parsed objects with the truth (BEHAVIOUR 6) and observes the result.
  void match(ScoredRollout& one, MetricsBag& metrics) const;

  /// Adds the rollout metrics of BEHAVIOUR 15 and 16 under a matching (its own, or one at another
  /// gate) as raw observations.
  void observe(const ScoredRollout& one, const Matching& matching, MetricsBag& metrics) const;

  const Options& options() const { return options_; }
  const Dataset& dataset() const { return dataset_; }

 private:
  const Dataset& dataset_;
  const PromptEncoder& prompts_;
  const AnswerFormat& format_;
  PixelStore& pixels_;
  Options options_;
};

}  // namespace rematch
