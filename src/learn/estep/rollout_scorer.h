#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/flow/parsed.h"
#include "base/flow/rollout.h"
#include "base/metrics.h"
#include "base/settings/augment.h"
#include "learn/data/class_list.h"
#include "learn/data/dataset.h"
#include "learn/data/ordering.h"
#include "learn/estep/answer/answer_format.h"
#include "learn/estep/match/labels.h"
#include "learn/estep/match/matcher.h"
#include "model/text/prompt.h"
#include "model/vision/pixel_store.h"

namespace rematch {

/// One sample of an E-step: prompt and ground truth first, then rollout, parse and matching.
struct ScoredRollout {
  const Sample* sample = nullptr;  ///< of the data set, without augmentation
  Objects ground_truth;            ///< in the order of numbering
  std::string own_prompt;  ///< user text of the sample in this epoch; empty: that of the run
  Prompt prompt;
  Rollout rollout;
  ParsedRollout parsed;
  std::vector<double> scores;  ///< of parsed.objects (BEHAVIOUR 20.2); empty = the backend has none
  Matching matching;
};

/// Makes the prompt of a sample, image pads expanded.
/// @param epoch  part of the sampling key
/// @param prompts  null: without tokens
Prompt make_prompt(const Sample& sample, int64_t epoch, const PromptEncoder* prompts,
                   const PatchOptions& patches);

/// Parses a rollout strictly (BEHAVIOUR 5) and scores its objects.
void parse_rollout(ScoredRollout& rollout, const AnswerFormat& format,
                   const std::vector<TokenId>& stop_ids);

/// Makes prompts for the samples of a data set; parses and matches the rollouts. Training,
/// evaluation, probe, `rematch rollout` and `rematch eval --answers` share these steps.
class RolloutScorer {
 public:
  struct Options {
    MatchSettings match;
    LabelMatch labels;
    ObjectOrder ordering = ObjectOrdering::kSorted;
    uint64_t seed = 42;
    AugmentSettings augment;  ///< off outside training
    PatchOptions patches;
    std::vector<TokenId> stop_ids;
    std::string backend;       ///< name of the engine, for errors
    std::string usual_prompt;  ///< user text of samples without their own
  };
  /// All parts must outlive the scorer.
  /// @param prompts,pixels  null for answers that are given: prompts have no tokens
  RolloutScorer(const Dataset& dataset, const AnswerFormat& format, Options options,
                const PromptEncoder* prompts = nullptr, PixelStore* pixels = nullptr);

  /// Starts loading the images of samples.
  void prefetch(const std::vector<int64_t>& sample_indices, int64_t epoch) const;
  /// Makes prompts and ground truths of samples, in the given order.
  /// @param sample_indices  into dataset.samples()
  std::vector<ScoredRollout> prepare(const std::vector<int64_t>& sample_indices,
                                     int64_t epoch) const;
  /// Parses the rollout strictly (BEHAVIOUR 5).
  /// @throws UserError when the backend used a different prompt (the specification's sanity check)
  void parse(ScoredRollout& rollout, MetricsBag& metrics) const;
  /// Matches the parsed objects with the ground truth (BEHAVIOUR 6) and adds the metrics.
  void match(ScoredRollout& rollout, MetricsBag& metrics) const;

  /// Adds the raw observations of BEHAVIOUR 15 and 16 for a matching of the rollout: its own, or
  /// one at another gate.
  void observe(const ScoredRollout& rollout, const Matching& matching, MetricsBag& metrics) const;

  const Options& options() const { return options_; }
  const Dataset& dataset() const { return dataset_; }

 private:
  /// A sample with the augmentation of an epoch.
  Sample shown_sample(int64_t index, int64_t epoch) const;
  /// Adds what shows boxes where there is nothing: listed names that no object has, and pictures
  /// without objects. Adds nothing where neither occurs.
  void observe_false_boxes(const ScoredRollout& rollout, MetricsBag& metrics) const;

  const Dataset& dataset_;
  const AnswerFormat& format_;
  Options options_;
  const PromptEncoder* prompts_;
  PixelStore* pixels_;
  ClassNames classes_;
};

}  // namespace rematch
