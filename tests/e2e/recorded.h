#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/rollout/engine.h"
#include "learn/estep/make_target.h"
#include "learn/estep/roll_out.h"
#include "learn/mstep/mstep.h"
#include "learn/train/trainer.h"

namespace rematch::test {

/// Stage 2 on the golden scenes and the tiny golden model in process, with recorded answers in the
/// place of an engine: the same numbers every time, whatever the decoder does.
class RecordedStage2 {
 public:
  /// @param num_workers  threads that load images ahead
  explicit RecordedStage2(int num_workers = 0);
  ~RecordedStage2();
  /// Segments of a window as the training loop builds them.
  /// @param samples  micro-batches of sample indices
  WindowSegments segments(const std::vector<std::vector<int64_t>>& samples);
  WindowSegments segments(const std::vector<std::vector<int64_t>>& samples, MetricsBag& metrics);
  /// The parts of a whole training loop.
  RolloutParts rollout_parts() const;
  const Dataset& dataset() const;
  PixelStore& pixels() const;
  /// Rolls out and scores samples.
  /// @param sample_indices  into the data set
  std::vector<ScoredRollout> score(const std::vector<int64_t>& sample_indices);
  /// A fresh optimizer over a freshly loaded model.
  /// @param learning_rate  constant.
  /// @param device of the model
  MStep& mstep(double learning_rate, at::Device device = at::kCPU);
  /// The same for a Trainer, which owns it.
  std::unique_ptr<MStep> make_mstep(double learning_rate, at::Device device = at::kCPU);
  /// From now on called with every row that the model is trained on.
  void watch_rows(std::function<void(const PackedRow&)> on_row);
  /// From now on targets are made so. To be called before rollout_parts().
  void teach(const TargetSettings& target);
  /// From now on a longer segment is an error. To be called as teach().
  void cap_segments(int cap_tokens);
  /// From now on every answer stops after `num_tokens`, as a low max_new_tokens would have it.
  void cut_answers(size_t num_tokens);
  /// Prompts that the engine was asked, in order.
  const std::vector<Prompt>& prompts_seen() const;
  int64_t num_samples() const;
  /// From now on the engine reports prompt ids that differ from ours at `position`, as a backend
  /// with a token drift would.
  void drift_prompt_ids(size_t position);
  const RolloutScorer& scorer() const;
  RolloutEngine& engine() const;
  /// From now on the engine says that it holds a copy of the weights, as a backend next to the
  /// model would, and training offloads around it. To be called before rollout_parts().
  /// @param offload may be null
  /// @param on_event  called with "sync", "generate" and "release" as they come; what it throws the
  /// engine throws
  void hold_own_weights(Offload* offload, std::function<void(const std::string&)> on_event);
  /// As hold_own_weights, for an engine that decodes with the model itself.
  void share_weights(Offload* offload, std::function<void(const std::string&)> on_event);
  /// Parameters of the model that mstep() loaded.
  std::vector<at::Tensor> parameters() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace rematch::test
