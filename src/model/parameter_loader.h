#pragma once
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/hf_dir.h"
#include "model/model.h"

namespace rematch {

/// Reads and checks parameters of a checkpoint one by one, and tracks the unused ones.
class ParameterLoader {
 public:
  /// @param dir  null = shapes only, on the meta device
  ParameterLoader(std::shared_ptr<const HfDir> dir, const ModelOptions& options)
      : dir_(std::move(dir)), options_(options) {}

  /// The tensor `name` in the model's dtype on its device. @throws UserError (data) if it is
  /// missing, misshapen or not of a float dtype
  at::Tensor take(const std::string& name, const std::vector<int64_t>& shape) {
    return take_as(name, name, shape);
  }
  /// As take(), with `as` for the name of the parameter.
  at::Tensor take_as(const std::string& name, const std::string& as,
                     const std::vector<int64_t>& shape);
  /// Counts a tensor as used without loading it as a parameter.
  void skip(const std::string& name) { used_.push_back(name); }

  const HfDir* dir() const { return dir_.get(); }
  std::vector<NamedParameter> take_parameters() { return std::move(parameters_); }
  /// Unused names, without the rotary tables of older checkpoints.
  std::vector<std::string> unused() const;

 private:
  std::shared_ptr<const HfDir> dir_;
  ModelOptions options_;
  std::vector<NamedParameter> parameters_;
  std::vector<std::string> used_;
};

}  // namespace rematch
