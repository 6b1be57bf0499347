#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "rollout/engine.h"
#include "rollout/native/drafter.h"
#include "rollout/native/kv_blocks.h"
#include "rollout/native/prompt_images.h"
#include "rollout/native/step.h"
#include "rollout/native/thread_governor.h"
#include "rollout/sampler.h"
#include "model/model.h"
#include "model/row.h"

namespace rematch {

class Tokenizer;

/// Rows of a step: enough to keep matrix products busy, few enough that a prompt does not delay
/// running answers for long.
inline constexpr int kStepRowsOnCpu = 512, kStepRowsOnDevices = 4096;

/// Checks ranges. @throws UserError (config) naming the key
void check_native_options(const NativeSettings& options);

/// Backend `native` (BEHAVIOUR 4.4): continuous batching over a paged cache on the training
/// weights. Every step computes the next token of all live answers and pieces of waiting prompts
/// together, without padding; equal starts of prompts are computed once. The same answers as `hf`.
class NativeEngine : public RolloutEngine {
 public:
  struct Parts {
    std::shared_ptr<const Model> model;
    std::shared_ptr<const Tokenizer> tokenizer;
    PixelGetter pixels;
    std::unique_ptr<StepRunner> runner;  ///< on that model
    ImageEncoder encoder;                ///< of that model
  };
  /// Totals of generate() so far.
  struct Stats {
    int64_t num_steps = 0;
    int64_t num_rows = 0;          ///< tokens computed, without wrong drafts
    int64_t num_drafts = 0;        ///< drafts computed
    int64_t num_right_drafts = 0;  ///< that were right: steps saved
    int64_t num_found_tokens = 0;  ///< tokens found in the cache instead of computed
    int64_t num_preemptions = 0;   ///< times a sequence lost its blocks and was computed again
    int64_t num_images = 0;        ///< that went through the vision tower
  };
  /// @throws UserError (config) for options out of range
  NativeEngine(Parts parts, const GenerateOptions& options);
  ~NativeEngine() override;

  /// Content of the cache is valid only for the weights it was computed with.
  void sync_weights(int64_t version) override;
  /// @throws UserError (data) naming the sample when its ids, images and pads do not match or a
  /// logit is not finite, (config) naming it when it does not fit into the cache; Interrupted
  std::vector<Rollout> generate(const std::vector<Prompt>& prompts,
                                const std::function<void(int)>& on_progress) override;
  void release() override;

  int64_t num_near_ties() const override;
  const Stats& stats() const { return stats_; }
  /// Blocks of the current cache; null before the first generate() and after release().
  const KvBlocks* blocks() const { return blocks_.get(); }

  /// For tests and benches: sees every row of logits before a token is chosen, and may change it.
  /// @param position  of the answer
  using LogitsObserver =
      std::function<void(size_t prompt_idx, size_t position, std::span<float> logits_V)>;
  void observe_logits(LogitsObserver observer) { observer_ = std::move(observer); }

 private:
  class Generation;
  int64_t max_live(size_t num_prompts) const;
  int64_t max_step_rows(size_t num_prompts) const;
  void need_samplers();
  void reserve_cache(std::span<const Prompt> prompts);
  void reserve_blocks(const KvBlocks& blocks, int64_t block_bytes, int64_t max_rows);

  Parts parts_;
  GenerateOptions options_;
  std::vector<Sampler> samplers_;  ///< one for each thread
  Drafter drafter_;                ///< also learns from the answers of earlier calls
  std::unique_ptr<KvBlocks> blocks_;
  int64_t weights_version_ = kWeightsOfNow;
  ThreadGovernor governor_;
  Stats stats_;
  LogitsObserver observer_;
};

}  // namespace rematch
