#pragma once
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "model/checkpoint/hf_dir.h"
#include "model/layer_source.h"
#include "model/model.h"

namespace rematch {

/// Reads and checks parameters of a checkpoint one by one, and tracks the unused ones.
class ParameterLoader {
 public:
  /// @param dir  null = shapes only, on the meta device
  /// @param float32_names  ModelDescription::float32_parameters
  /// @param head  module that is never quantised
  ParameterLoader(std::shared_ptr<const HfDir> dir, const ModelOptions& options,
                  std::set<std::string> float32_names, std::string head)
      : dir_(std::move(dir)),
        options_(options),
        float32_names_(std::move(float32_names)),
        head_(std::move(head)) {}

  /// The tensor `name` on the model's device, in the model's dtype or in float32 if it is one of
  /// the float32 names and stored so.
  /// @throws UserError (data) if it is missing, misshapen or not of a float dtype
  at::Tensor take(const std::string& name, const std::vector<int64_t>& shape) {
    return take_as(name, name, shape);
  }
  /// As take(), with `as` for the name of the parameter.
  at::Tensor take_as(const std::string& name, const std::string& as,
                     const std::vector<int64_t>& shape);
  /// Fills a Linear's weight: packed if it is stored so or ModelOptions::four_bit asks for it.
  /// @throws UserError (data) as take() and read_four_bit(), and for a packed head
  void take_weight(LinearWeights& layer, const LinearDescription& linear);
  /// Takes the tensors of a block. If there are ModelOptions::blocks, these read what they hold.
  LayerSource::Need take_block(const std::function<void()>& fill);
  /// Counts a tensor as used without loading it as a parameter.
  void skip(const std::string& name) { used_.push_back(name); }

  const HfDir* dir() const { return dir_.get(); }
  std::vector<NamedParameter> take_parameters() { return std::move(parameters_); }
  /// Unused names, without the rotary tables of older checkpoints.
  Strings unused_names() const;

 private:
  /// The packed weight of a Linear on the model's device; null if it stays as it is.
  std::shared_ptr<const FourBitWeight> pack(const LinearDescription& linear);

  std::shared_ptr<const HfDir> dir_;
  ModelOptions options_;
  std::set<std::string> float32_names_;
  std::string head_;
  bool is_in_block_ = false;  ///< take() leaves values to take_block()
  std::vector<NamedParameter> parameters_;
  Strings used_;
};

}  // namespace rematch
