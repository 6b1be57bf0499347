#pragma once
#include <ATen/ATen.h>

#include <memory>
#include <optional>
#include <string>

#include "assembly/session_parts.h"
#include "ranks/group.h"
#include "estep/rollout_scorer.h"
#include "estep/truth_segments.h"
#include "model/feature_cache.h"
#include "model/model.h"
#include "mstep/mstep.h"
#include "observe/terminal.h"
#include "pack/stream_packing.h"

namespace rematch {

/// The common start of train, eval and rollout: checked data, prompts, loaded model. Members are in
/// order of construction, with cheap checks before slow work (BEHAVIOUR 4.3).
class Session {
 public:
  /// @param device  value of --device
  /// @throws UserError: backend and device before data are read, data before the model is loaded
  Session(const Settings& settings, const std::string& device, const SessionNeeds& needs,
          const Group& group, Terminal& terminal);

  const Settings& settings;
  Terminal& terminal;
  at::Device device;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::string format_name;  ///< in answer_formats()
  std::unique_ptr<const AnswerFormat> format;
  PatchOptions patches;
  std::unique_ptr<PromptEncoder> prompts;
  std::optional<Dataset> train_data;
  std::optional<Dataset> val_data;
  /// training samples that `template.truncation_strategy: delete` dropped
  int64_t num_long_dropped = 0;
  std::unique_ptr<PixelStore> pixels;
  /// completed for the data when backend `vllm` is needed
  VllmOptions vllm;
  /// packing of train_data in stage 1, else null
  std::unique_ptr<StreamPacking> stream_packing;
  std::shared_ptr<Model> model;  ///< with its adapter, if one is trained

  /// Target settings; `rewrite` if the configuration names no format and the checkpoint's format
  /// writes digits.
  TargetSettings target_settings() const;
  /// Noise on shown coordinates when training on the truth.
  InputNoise input_noise() const;
  /// Cap of a segment in tokens; 0 = none.
  int max_length() const;
  /// The model for the M-step. @param kept  cache for the features of recurring rows; may be null
  RowModel row_model(FeatureCache* kept = nullptr) const;
  /// Builder of full ground-truth segments of the validation data (stage 1).
  std::unique_ptr<TruthSegments> validation_truth() const;
  /// Builder of full ground-truth segments of train_data, with noise and augmentation.
  /// @param row_tokens  cap of a packed micro-batch; 0 = none
  std::unique_ptr<TruthSegments> training_truth(int row_tokens) const;
  /// Options of a scorer, without the stop ids.
  RolloutScorer::Options scorer_options() const;
  /// The same with augmentation, for training samples.
  RolloutScorer::Options training_options() const;

 private:
  Session(const Settings& settings, SessionParts parts, const SessionNeeds& needs,
          const Group& group, Terminal& terminal);
  std::unique_ptr<StreamPacking> make_stream_packing() const;
};

}  // namespace rematch
