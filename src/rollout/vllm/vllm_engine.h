#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "rollout/engine_factory.h"
#include "rollout/vllm/engine_ranks.h"
#include "rollout/vllm/plugin_api.h"
#include "rollout/vllm/vllm_options.h"
#include "vision/patches.h"

namespace rematch {

/// Backend `vllm`: the real vLLM in this process, with a copy of the weights (BEHAVIOUR 4.3,
/// ENGINES 1). What Python returns is used only after checks: every request answered, prompt ids as
/// sent, ids within the vocabulary. When several ranks run one engine (VllmOptions::ranks), each
/// has such an object: all are constructed together, and generate() is called with the same prompts
/// on all (SharedEngine).
class VllmEngine : public RolloutEngine {
 public:
  /// Starts the engine and hands over the current weights.
  /// @param plugin   outlives the engine; tests pass their own
  /// @param patches  how the images of prompts are pre-processed
  /// @throws UserError (config) for options out of range; (environment) when the engine does not
  /// start or does not accept the weights; Interrupted
  VllmEngine(VllmPlugin& plugin, const EngineParts& parts, const GenerateOptions& options,
             const PatchOptions& patches);

  bool holds_own_weights() const override { return true; }
  /// Hands over every parameter, merged with the adapter, layer by layer; nothing when the engine
  /// has this version.
  /// @throws UserError (environment) when the engine does not accept them
  void sync_weights(int64_t version) override;
  /// @throws EngineFailure naming the sample for an answer that cannot be trusted; UserError
  /// (config) for a prompt that is too long; Interrupted, with no request left in the engine
  std::vector<Rollout> generate(const std::vector<Prompt>& prompts,
                                const std::function<void(int)>& on_progress) override;
  void release() override;

 private:
  void start();
  void hand_over_weights();
  using Waiting = std::map<std::string, size_t>;  ///< requests without an answer, and their places
  void stop_shared_engine();
  void generate_together(const Prompt* prompts, VllmAnswer* answers, size_t count,
                         const std::function<void(int)>& on_finished);
  bool step(const Prompt* prompts, VllmAnswer* answers, Waiting& waiting,
            const std::function<void(int)>& on_finished);
  VllmRequest request_of(const Prompt& prompt, const std::string& id) const;
  Rollout checked(const Prompt& prompt, const VllmAnswer& answer) const;
  void check_prompt_ids(const Prompt& prompt, const VllmAnswer& answer) const;
  void check_weights() const;

  VllmPlugin& plugin_;
  EngineParts parts_;
  GenerateOptions options_;
  PatchOptions patches_;
  EngineRanks ranks_;
  int64_t engine_number_ = 0;
  int64_t num_syncs_ = 0;     ///< version of the weights in the engine
  int64_t synced_version_;    ///< the caller's name of it
  int64_t num_requests_ = 0;  ///< ids are never used twice
};

}  // namespace rematch
