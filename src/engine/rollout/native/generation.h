#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "engine/rollout/native/live_answer.h"
#include "engine/rollout/native/native_engine.h"
#include "engine/rollout/native/prompt_images.h"
#include "engine/rollout/native/scheduler.h"
#include "engine/rollout/native/step.h"

namespace rematch {

/// One call of NativeEngine::generate(): admits prompts while there is room, steps all live answers
/// together and removes each answer when it ends.
class NativeEngine::Generation {
 public:
  /// All arguments must outlive this.
  /// @param on_progress  as in RolloutEngine::generate()
  Generation(NativeEngine& engine, const std::vector<Prompt>& prompts,
             const std::function<void(int)>& on_progress);

  /// Answers all prompts, in order.
  /// @throws as NativeEngine::generate(), after releasing all blocks
  std::vector<Rollout> run();

 private:
  /// An answer and the logits of its next token.
  struct Pending {
    LiveAnswer* answer = nullptr;
    std::span<float> logits_V;
  };
  /// Result of adding a token to an answer. kDrafted: logits of the following token are available.
  enum class Added { kEnded, kWaits, kDrafted };
  struct DraftCount {
    int64_t num_drafts = 0;
    int64_t num_right = 0;
  };

  void queue_prompts();
  void step();
  void encode_images(const StepPlan& plan);
  Step make_step(const StepPlan& plan);
  /// Chooses on the runner's device, where there are no drafts.
  void choose_on_device(const StepPlan& plan, const Step& step);
  void report_progress(int num_done_before);
  DraftCount choose_tokens(const StepPlan& plan, std::span<float> logits_KV);
  std::vector<ChosenToken> sample(const std::vector<Pending>& pending);
  Added add_token(LiveAnswer& answer, const ChosenToken& token);
  LiveAnswer& find_answer(const StepPlan::Item& item) { return live_.at(item.sequence->arrival()); }
  template <typename Visit>
  void for_each_shown_image(const StepPlan::Item& item, const Visit& visit);

  NativeEngine& engine_;
  const GenerateOptions& options_;
  const std::vector<Prompt>& prompts_;
  const RepeatedPrompts repeated_;
  const std::function<void(int)>& on_progress_;
  const double rows_per_reading_;  ///< 0 = no drafts
  PromptImages images_;
  std::vector<Rollout> rollouts_;
  /// by arrival; outlives the scheduler, which points to their sequences
  std::map<int64_t, LiveAnswer> live_;
  Scheduler scheduler_;
  size_t next_prompt_ = 0;
  int num_done_ = 0;
};

}  // namespace rematch
