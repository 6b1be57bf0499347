#pragma once
#include <memory>

#include "engine/rollout/device_sampler.h"
#include "engine/rollout/engine.h"
#include "engine/rollout/sampler.h"
#include "model/model.h"
#include "model/row.h"

namespace rematch {

class Tokenizer;

/// Backend `hf`: the training model decodes a left-padded batch over a key/value cache (BEHAVIOUR
/// 4.2, ENGINES 2). The reference for the other backends: greedy ids equal those of batch size 1
/// and of transformers' generate, unless the two best logits nearly tie.
class HfEngine : public RolloutEngine {
 public:
  /// @param model      shared with training; never written to
  /// @param tokenizer  token bytes for the repeat guard
  /// @param pixels     called once per image of a prompt
  /// @throws UserError (config) for options out of range
  HfEngine(std::shared_ptr<const Model> model, std::shared_ptr<const Tokenizer> tokenizer,
           PixelGetter pixels, const GenerateOptions& options);

  void sync_weights(int64_t) override {}
  /// Answers `batch_size` prompts at a time, in order.
  /// @throws UserError (data) naming the sample when its ids, images and pads do not match or a
  /// logit is not finite; Interrupted
  std::vector<Rollout> generate(const std::vector<Prompt>& prompts,
                                const std::function<void(int)>& on_progress) override;
  void release() override {}

  int64_t num_near_ties() const override {
    return sampler_.num_near_ties() + device_sampler_.num_near_ties();
  }

 private:
  std::shared_ptr<const Model> model_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  PixelGetter pixels_;
  GenerateOptions options_;
  Sampler sampler_;
  DeviceSampler device_sampler_;
};

}  // namespace rematch
