#pragma once
#include <ATen/ATen.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/peft.h"
#include "model/adapter_targets.h"
#include "model/adapter_tensors.h"
#include "model/lora.h"
#include "model/model.h"
#include "model/token_rows.h"

namespace rematch {

/// A LoRA or DoRA adapter on a model (MODEL 9). Once attached, every forward pass goes through it;
/// outside training_row() without dropout, as in rollouts and evaluation: the merged effect, with
/// base weights that never change.
class Adapter {
 public:
  struct Options {
    LoraOptions lora;
    uint64_t seed = 42;      ///< of A and of the dropout masks
    std::string base_model;  ///< as named in adapter_config.json
  };

  /// Attaches fresh adapters to the selected modules. The model's own parameters no longer need
  /// gradients, except those trained in full.
  /// @throws UserError (config) for dropout on the head's input
  static std::shared_ptr<Adapter> create(Model& model, const AdapterSelection& selection,
                                         const Options& options);

  /// Attaches a saved adapter to the model. @param where  its directory, for errors. @throws
  /// UserError (data) as sort_adapter_tensors
  static std::shared_ptr<Adapter> load(Model& model, const PeftAdapter& files,
                                       const std::string& where, uint64_t seed = 42);

  /// Everything that is trained: `MODULE.lora_A.weight`, `MODULE.lora_B.weight`,
  /// `MODULE.lora_magnitude_vector` (float32), rows of tokens as
  /// `MODULE.token_adapter.trainable_tokens_delta` (float32), then parameters trained in full under
  /// their checkpoint names. All are leaves whose storage stays the same; only values change.
  const std::vector<NamedParameter>& parameters() const { return parameters_; }

  /// Copies the values of a saved adapter of the same shape (resume). @throws UserError (data) when
  /// its layers or sizes differ
  void set_values(const PeftAdapter& files, const std::string& where);

  /// What write_peft_adapter needs. Tensors are the live ones.
  PeftAdapter files() const;

  /// The tensor that gives a plain model this adapter's effect (PEFT's merge): a new one for
  /// adapted weights; else the parameter's own.
  at::Tensor merged(const NamedParameter& parameter) const;

  /// Dropout is active until the returned object is destroyed: hold it over the forward and the
  /// backward pass of one training row. Masks depend on the seed and the two numbers only. @param
  /// step  finished optimizer steps. @param row  of the window
  [[nodiscard]] std::shared_ptr<void> training_row(int64_t step, int64_t row);

  /// The switch of all layers, for tests.
  LoraDropout& dropout() { return *dropout_; }

 private:
  Adapter(const Options& options, PeftTargets targets)
      : options_(options), targets_(std::move(targets)) {}
  /// What is trained, by module or parameter.
  struct Parts {
    std::vector<std::pair<std::string, LoraTensors>> layers;
    std::vector<std::pair<std::string, TokenRowTensors>> token_rows;  ///< embedding, untied head
    std::vector<std::string> saved;
  };
  void attach(Model& model, Parts parts, const std::shared_ptr<Adapter>& self);

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
