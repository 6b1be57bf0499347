#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/adapter_targets.h"
#include "model/adapter_tensors.h"
#include "model/checkpoint/peft.h"
#include "model/lora.h"
#include "model/model.h"
#include "model/row_scope.h"
#include "model/token_rows.h"

namespace rematch {

/// A LoRA or DoRA adapter on a model (MODEL 9). Once attached, every forward pass applies it; with
/// dropout only inside training_row(), not in rollouts and evaluation. Base weights never change.
class Adapter {
 public:
  struct Options {
    LoraSettings lora;
    uint64_t seed = 42;      ///< for A and the dropout masks
    std::string base_model;  ///< its name in adapter_config.json
    BaseRecord base = {};
  };

  /// Attaches new adapters to the selected modules. The model's parameters no longer require
  /// gradients, except those trained in full.
  /// @throws UserError (config) for dropout on the head's input
  static std::shared_ptr<Adapter> create(Model& model, const AdapterSelection& selection,
                                         const Options& options);

  /// Attaches a saved adapter to the model.
  /// @param where  its directory, for errors.
  /// @throws UserError (data) as sort_adapter_tensors
  static std::shared_ptr<Adapter> load(Model& model, const PeftAdapter& files,
                                       const std::string& where, uint64_t seed = 42);

  /// All trained parameters: `MODULE.lora_A.weight`, `MODULE.lora_B.weight`,
  /// `MODULE.lora_magnitude_vector` (float32), token rows as
  /// `MODULE.token_adapter.trainable_tokens_delta` (float32), then parameters trained in full under
  /// their checkpoint names. All are leaves with fixed storage.
  const std::vector<NamedParameter>& parameters() const { return parameters_; }

  /// Copies the values of a saved adapter of the same shape (resume).
  /// @throws UserError (data) if its layers or sizes differ
  void set_values(const PeftAdapter& files, const std::string& where);

  /// The adapter for write_peft_adapter(), with the live tensors.
  PeftAdapter files() const;

  /// The parameter with the adapter merged into it, as PEFT does: a new tensor for adapted and for
  /// packed weights, else the parameter itself.
  at::Tensor merge(const NamedParameter& parameter) const;
  /// True if merge() computes a new tensor for it.
  bool changes(const NamedParameter& parameter) const;

  /// Activates dropout: hold the result over the forward and the backward pass of one training row.
  /// Masks depend only on the seed and the two numbers.
  /// @param step  finished optimizer steps.
  /// @param row  index in the window
  [[nodiscard]] RowScope training_row(int64_t step, int64_t row);

  /// The dropout of all layers, for tests.
  LoraDropout& dropout() { return *dropout_; }

 private:
  Adapter(const Options& options, PeftTargets targets)
      : options_(options), targets_(std::move(targets)) {}
  /// The trained tensors by module or parameter.
  struct Trained {
    std::vector<std::pair<std::string, LoraTensors>> layers;
    std::vector<std::pair<std::string, TokenRowTensors>> token_rows;  ///< embedding, untied head
    Strings saved;
  };
  void attach(Model& model, Trained trained, const std::shared_ptr<Adapter>& self);

  Options options_;
  PeftTargets targets_;
  std::shared_ptr<LoraDropout> dropout_ = std::make_shared<LoraDropout>();
  std::map<std::string, std::shared_ptr<const LoraLinear>> layers_;
  std::map<std::string, std::shared_ptr<const TokenRows>> token_rows_;
  /// names of a tied matrix that is trained in full; empty = none
  std::string tied_embedding_, tied_head_;
  std::vector<NamedParameter> parameters_;
};

}  // namespace rematch
