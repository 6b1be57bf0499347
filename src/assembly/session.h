#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "config/config.h"
#include "data/dataset.h"
#include "estep/estep.h"
#include "rollout/engine.h"
#include "rollout/offload.h"
#include "rollout/vllm/vllm_options.h"
#include "evaluate/evaluate.h"
#include "model/model.h"
#include "mstep/mstep.h"
#include "observe/terminal.h"
#include "train/stream_packing.h"

namespace rematch {

/// What a command needs from its session; nothing else is read or built.
struct SessionNeeds {
  bool train_data = false;
  bool val_data = false;
  bool rollouts = false;    ///< an engine and examiners
  std::string weights_dir;  ///< a checkpoint whose weights replace those of model.model (resume); empty: those of model.model
  /// Moves training state for offload; tests replace it.
  std::function<std::unique_ptr<TensorMover>()> make_mover = make_tensor_mover;
};

/// Options of the `vllm` backend from a configuration. @throws UserError (environment) for several ranks
VllmOptions vllm_options_of(const Settings& settings, const at::Device& device);

/// The parts of a configuration: checked data, loaded model, rollout engine. Train, eval and rollout all start from one.
/// Members are in the order of construction, cheap checks before slow work (BEHAVIOUR 4.3).
class Session {
 public:
  /// @param device  value of --device
  /// @throws UserError: backend and device before data are read, data before the model is loaded
  Session(const Settings& settings, const std::string& device, const SessionNeeds& needs, Terminal& terminal);

  const Settings& settings;
  Terminal& terminal;
  at::Device device;
  std::shared_ptr<const Tokenizer> tokenizer;
  CoordVocab coords;
  AnswerVocab vocab;
  PatchOptions patches;
  std::unique_ptr<PromptEncoder> prompts;
  std::optional<Dataset> train_data;
  std::optional<Dataset> val_data;
  std::unique_ptr<PixelStore> pixels;
  std::unique_ptr<StreamPacking> stream_packing;  ///< of train_data in stage 1 with packing, else null
  std::shared_ptr<Model> model;
  std::unique_ptr<Offload> offload;          ///< null when not enabled or without effect
  std::unique_ptr<RolloutEngine> engine;     ///< null without rollouts
  std::unique_ptr<Examiner> train_examiner;  ///< null without rollouts or train data
  std::unique_ptr<Examiner> val_examiner;

  /// Cap of a segment in tokens; 0 = none.
  int max_length() const;
  /// The model as the M-step sees it.
  RowModel row_model() const;
  /// Segments of the full ground truth of a data set (stage 1). @param row_tokens  cap of a micro-batch that packing made; 0 = none
  std::unique_ptr<TeacherSource> teacher(const Dataset& dataset, int row_tokens = 0, const InputNoise& noise = {}) const;

  /// Evaluation of val_data: rollouts when there is an engine; with `teacher_forced`, the loss on the full ground truth too (stage 1).
  /// @param extra_gates  further IoU gates to score at
  std::unique_ptr<Evaluation> evaluation(bool teacher_forced, std::vector<double> extra_gates = {}) const;

 private:
  /// Attaches the configured adapter to the model. @param saved_dir  adapter directory to take values from; empty = a fresh adapter
  void make_adapter(const std::string& saved_dir);
  Examiner::Options examiner_options() const;
  std::unique_ptr<Offload> make_offload(std::unique_ptr<TensorMover> mover) const;
  std::unique_ptr<StreamPacking> make_stream_packing() const;
  mutable std::unique_ptr<TeacherSource> val_teacher_;
};

}  // namespace rematch
