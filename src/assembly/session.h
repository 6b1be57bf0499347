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

/// The first parts of a configuration: checked data, prompts, loaded model. Train, eval and rollout
/// all start from one. Members are in the order of construction, cheap checks before slow work
/// (BEHAVIOUR 4.3).
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
  /// settled for the data when backend `vllm` is needed
  VllmOptions vllm;
  /// of train_data in stage 1 with packing, else null
  std::unique_ptr<StreamPacking> stream_packing;
  std::shared_ptr<Model> model;  ///< with its adapter, when one is trained

  /// How targets are made. Where the checkpoint's own format, which the configuration does not
  /// name, writes digits, that is `rewrite`.
  TargetSettings target_settings() const;
  /// The noise on coordinates that training on the truth shows.
  InputNoise input_noise() const;
  /// Cap of a segment in tokens; 0 = none.
  int max_length() const;
  /// The model as the M-step sees it. @param kept  features of rows that may recur; null = computed
  /// every time
  RowModel row_model(FeatureCache* kept = nullptr) const;
  /// Segments of the full ground truth of validation data (stage 1).
  std::unique_ptr<TruthSegments> truth_of_validation() const;
  /// Segments of the full ground truth of train_data, with noise and augmentation. @param
  /// row_tokens  cap of a micro-batch that packing made; 0 = none
  std::unique_ptr<TruthSegments> truth_of_training(int row_tokens) const;
  /// Options of scoring, without the stop ids.
  RolloutScorer::Options scorer_options() const;
  /// The same for training samples: with augmentation.
  RolloutScorer::Options training_options() const;

 private:
  Session(const Settings& settings, SessionParts parts, const SessionNeeds& needs,
          const Group& group, Terminal& terminal);
  std::unique_ptr<StreamPacking> make_stream_packing() const;
};

}  // namespace rematch
