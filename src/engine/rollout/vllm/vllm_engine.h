#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/rollout/engine_factory.h"
#include "engine/rollout/vllm/engine_ranks.h"
#include "engine/rollout/vllm/plugin_api.h"
#include "engine/rollout/vllm/vllm_options.h"
#include "model/vision/patches.h"

namespace rematch {

/// Backend `vllm`: the real vLLM in this process, with a copy of the weights (BEHAVIOUR 4.3,
/// ENGINES 1). Answers from Python are checked before use: every request is answered, prompt ids
/// are as sent, ids are in the vocabulary. If several ranks run one engine (VllmOptions::ranks),
/// each has such an object; all construct it together and call generate() with the same prompts
/// (SharedEngine).
class VllmEngine : public RolloutEngine {
 public:
  /// Starts the engine and sends the current weights.
  /// @param plugin   outlives the engine; tests pass their own
  /// @param patches  how the images of prompts are pre-processed
  /// @throws UserError (config) for options out of range; (environment) when the engine does not
  /// start or does not accept the weights; Interrupted
  VllmEngine(VllmPlugin& plugin, const EngineParts& parts, const GenerateOptions& options,
             const PatchOptions& patches);

  bool holds_own_weights() const override { return true; }
  /// Sends every parameter, merged with the adapter, layer by layer, unless the engine has this
  /// version.
  /// @throws UserError (environment) if the engine does not accept them
  void sync_weights(int64_t version) override;
  /// @throws EngineFailure naming the sample for an invalid answer; UserError
  /// (config) for a prompt that is too long; Interrupted, with no request left in the engine
  std::vector<Rollout> generate(const std::vector<Prompt>& prompts,
                                const std::function<void(int)>& on_progress) override;
  void release() override;

 private:
  void start();
  void send_weights();
  void sync_own(int64_t version);
  using Waiting = std::map<std::string, size_t>;  ///< unanswered requests and their indices
  void stop_shared_engine();
  void add(const Prompt& prompt, const VllmRequest& request);
  void add_while_working(const Prompt* prompts, VllmAnswer* answers, size_t count, Waiting& waiting,
                         const std::function<void(int)>& on_finished);
  void generate_together(const Prompt* prompts, VllmAnswer* answers, size_t count,
                         const std::function<void(int)>& on_finished);
  bool step(const Prompt* prompts, VllmAnswer* answers, Waiting& waiting,
            const std::function<void(int)>& on_finished);
  VllmRequest make_request(const Prompt& prompt, const std::string& id) const;
  std::vector<VllmRequest> make_requests_of_all(const Prompt* prompts, size_t count);
  /// The pictures of the prompt's images.
  std::vector<VllmImage> load_images(const Prompt& prompt) const;
  Rollout check_answer(const Prompt& prompt, const VllmAnswer& answer) const;
  void check_prompt_ids(const Prompt& prompt, const VllmAnswer& answer) const;
  void check_weights() const;

  VllmPlugin& plugin_;
  EngineParts parts_;
  GenerateOptions options_;
  PatchOptions patches_;
  EngineRanks ranks_;
  int64_t engine_number_ = -1;  ///< none
  int64_t num_syncs_ = 0;       ///< version of the weights in the engine
  int64_t synced_version_;      ///< the caller's version of them
  int64_t num_requests_ = 0;    ///< ids are never used twice
};

}  // namespace rematch
