#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "data/dataset.h"
#include "data/ordering.h"
#include "estep/match/labels.h"
#include "estep/match/matcher.h"
#include "rollout/engine.h"
#include "flow/parsed.h"
#include "flow/rollout.h"
#include "text/prompt.h"
#include "text/tokenizer.h"
#include "vision/pixel_store.h"

namespace rematch {

/// One sample after its examination: prompt, rollout, parse and matching.
struct Examined {
  const Sample* sample = nullptr;
  std::vector<SceneObject> ground_truth;  ///< in the order of numbering
  Prompt prompt;
  Rollout rollout;
  ParsedRollout parsed;
  Matching matching;
};

/// The prompt of a sample, image pads expanded. @param epoch  part of the key of sampling
/// randomness
Prompt make_prompt(const Sample& sample, int64_t epoch, const PromptEncoder& prompts,
                   const PatchOptions& patches);

/// Images → rollouts → objects → matches. The E-step, evaluation and `rematch rollout` all examine
/// through this one class.
class Examiner {
 public:
  struct Options {
    MatchSettings match;
    LabelMatch labels;
    ObjectOrdering ordering = ObjectOrdering::kSorted;
    uint64_t seed = 42;
    PatchOptions patches;
    std::vector<TokenId> stop_ids;
    std::string backend;  ///< name of the engine, for errors
  };
  /// All parts outlive the examiner.
  Examiner(const Dataset& dataset, const PromptEncoder& prompts, const Tokenizer& tokenizer,
           const CoordVocab& coords, PixelStore& pixels, RolloutEngine& engine, Options options);

  /// Examines samples, results in the order given. Adds the rollout metrics of BEHAVIOUR 16 as raw
  /// observations.
  /// @param sample_indices  into dataset.samples()
  /// @param on_progress     number of finished answers, may be empty
  /// @throws UserError when the backend used a different prompt (the specification's sanity check);
  /// Interrupted
  std::vector<Examined> examine(const std::vector<int64_t>& sample_indices, int64_t epoch,
                                MetricsBag& metrics,
                                const std::function<void(int)>& on_progress = {});

  /// A sample whose answer another rank has: as from examine(), without its metrics. @param
  /// sample_idx  into dataset.samples()
  Examined judged(int64_t sample_idx, int64_t epoch, Rollout rollout) const;

  /// Adds what a sample was worth under a matching (its own, or one at another gate) as raw
  /// observations, which observe/catalog turns into the sums, means and percentiles of BEHAVIOUR 15
  /// and 16.
  void observe(const Examined& one, const Matching& matching, MetricsBag& metrics) const;

  /// Starts loading the images of samples that will be examined soon.
  void prefetch(const std::vector<int64_t>& sample_indices);

  const Options& options() const { return options_; }
  const Dataset& dataset() const { return dataset_; }

 private:
  Examined asked(int64_t sample_idx, int64_t epoch) const;
  void judge(Examined& one, Rollout rollout) const;

  const Dataset& dataset_;
  const PromptEncoder& prompts_;
  const Tokenizer& tokenizer_;
  const CoordVocab& coords_;
  PixelStore& pixels_;
  RolloutEngine& engine_;
  Options options_;
};

}  // namespace rematch
