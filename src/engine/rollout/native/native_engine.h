#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/rollout/engine.h"
#include "engine/rollout/native/drafter.h"
#include "engine/rollout/native/kv_blocks.h"
#include "engine/rollout/native/prompt_images.h"
#include "engine/rollout/native/state_pool.h"
#include "engine/rollout/native/step.h"
#include "engine/rollout/sampler.h"
#include "model/model.h"
#include "model/row.h"

namespace rematch {

class Tokenizer;

/// Most rows of a step: enough for efficient matrix products, few enough that a prompt does not
/// delay running answers for long.
inline constexpr int kStepRowsOnCpu = 512, kStepRowsOnDevices = 4096;

/// Prompts with the same tokens and images.
struct RepeatedPrompts {
  std::vector<bool> occurs_later;  ///< by prompt: a later one is the same
  int64_t num_distinct = 0;        ///< different prompts that occur more than once
};
RepeatedPrompts find_repeated_prompts(std::span<const Prompt> prompts);

/// Checks ranges.
/// @throws UserError (config) naming the key
void check_native_options(const NativeSettings& options);

/// Backend `native` (BEHAVIOUR 4.4): continuous batching over a paged cache on the training
/// weights. Every step computes the next token of all live answers and parts of waiting prompts
/// together, without padding; shared prefixes of prompts are computed once. Same answers as `hf`.
class NativeEngine : public RolloutEngine {
 public:
  struct Parts {
    std::shared_ptr<const Model> model;
    std::shared_ptr<const Tokenizer> tokenizer;
    PixelGetter pixels;
    std::unique_ptr<StepRunner> runner;  ///< for `model`
    ImageEncoder encoder;                ///< for `model`
  };
  /// Totals of generate() so far.
  struct Stats {
    int64_t num_steps = 0;
    int64_t num_rows = 0;          ///< tokens computed, without wrong drafts
    int64_t num_drafts = 0;        ///< drafts computed
    int64_t num_right_drafts = 0;  ///< drafts that were right: steps saved
    int64_t num_found_tokens = 0;  ///< tokens found in the cache instead of computed
    int64_t num_preemptions = 0;   ///< times a sequence lost its blocks and was recomputed
    int64_t num_images = 0;        ///< images encoded by the vision tower
  };
  /// @throws UserError (config) for options out of range
  NativeEngine(Parts parts, const GenerateOptions& options);
  ~NativeEngine() override;

  /// Discards the cache when the weights change.
  void sync_weights(int64_t version) override;
  /// @throws UserError (data) naming the sample if its ids, images and pads do not match or a
  /// logit is not finite; (config) if it does not fit into the cache; Interrupted
  std::vector<Rollout> generate(const std::vector<Prompt>& prompts,
                                const std::function<void(int)>& on_progress) override;
  void release() override;

  int64_t num_near_ties() const override;
  const Stats& stats() const { return stats_; }
  /// Blocks of the current cache; null before the first generate() and after release().
  const KvBlocks* blocks() const { return blocks_.get(); }
  /// Recurrent states of the current cache; null as blocks(), and if the model has none.
  const StatePool* states() const { return states_.get(); }

  /// For tests and benches: receives every row of logits before a token is chosen, and may change
  /// it.
  /// @param position  in the answer
  using LogitsObserver =
      std::function<void(size_t prompt_idx, size_t position, std::span<float> logits_V)>;
  void observe_logits(LogitsObserver observer) { observer_ = std::move(observer); }

 private:
  class Generation;
  int64_t max_live(size_t num_prompts) const;
  int64_t max_step_rows(size_t num_prompts) const;
  void ensure_samplers();
  void reserve_cache(std::span<const Prompt> prompts);
  void reserve_memory(const StepRunner::CacheShape& shape, int64_t max_rows);

  Parts parts_;
  GenerateOptions options_;
  std::vector<Sampler> samplers_;  ///< one per thread
  Drafter drafter_;                ///< keeps learning across calls
  std::unique_ptr<KvBlocks> blocks_;
  std::unique_ptr<StatePool> states_;  ///< null if the model has no recurrent states
  int64_t weights_version_ = kCurrentWeights;
  Stats stats_;
  LogitsObserver observer_;
};

}  // namespace rematch
