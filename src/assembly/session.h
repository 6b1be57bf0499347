#pragma once
#include <ATen/ATen.h>

#include <memory>
#include <optional>
#include <string>

#include "data/dataset.h"
#include "ranks/group.h"
#include "estep/estep.h"
#include "model/feature_cache.h"
#include "model/model.h"
#include "mstep/mstep.h"
#include "observe/terminal.h"
#include "pack/stream_packing.h"
#include "rollout/vllm/vllm_options.h"
#include "settings/settings.h"

namespace rematch {

/// What a command needs from its session; nothing else is read or built.
struct SessionNeeds {
  bool train_data = false;
  bool val_data = false;
  /// the loss on the full truth of val_data is measured: its samples must fit the cap
  bool val_truth = false;
  bool rollouts = false;          ///< make_rollouts() follows: its backend is checked first
  Group* engine_ranks = nullptr;  ///< as ranks_of_engine()
  /// a checkpoint whose weights replace those of model.model (resume); empty: those of model.model
  std::string weights_dir;
};

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
  CoordVocab coords;
  AnswerVocab vocab;
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

  /// Cap of a segment in tokens; 0 = none.
  int max_length() const;
  /// The model as the M-step sees it. @param kept  features of rows that may recur; null = computed
  /// every time
  RowModel row_model(FeatureCache* kept = nullptr) const;
  /// Segments of the full ground truth of a data set (stage 1). @param row_tokens  cap of a
  /// micro-batch that packing made; 0 = none
  std::unique_ptr<TeacherSource> teacher(const Dataset& dataset, int row_tokens = 0,
                                         const InputNoise& noise = {}) const;
  /// How samples are examined, but for the stop ids.
  Examiner::Options examiner_options() const;

 private:
  std::unique_ptr<StreamPacking> make_stream_packing() const;
};

}  // namespace rematch
