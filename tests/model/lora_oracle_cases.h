#pragma once
#include <memory>
#include <string>
#include <vector>

#include "model/adapter.h"
#include "model/model.h"

namespace rematch::test {

/// Answers of PEFT next to an adapter directory (dev/goldens/lora.py).
class LoraAnswers {
 public:
  /// @param adapter_dir  its answers lie in adapter_dir + ".answers.safetensors"
  explicit LoraAnswers(const std::string& adapter_dir);
  at::Tensor tensor(const std::string& name) const { return file_->tensor(name); }
  /// Names of tensors that start with `prefix`, without it.
  std::vector<std::string> names(const std::string& prefix) const;

 private:
  std::shared_ptr<SafetensorsFile> file_;
};

/// The mask of the recipe: element i (flat) of a module's input is kept when (i·7919 +
/// 31·len(name)) mod 10 > 0.
at::Tensor recipe_mask(const std::string& module, at::IntArrayRef sizes);

/// The row and images of the recipe for a model.
RowInput recipe_row(const ModelDescription& config);
at::Tensor recipe_logits(const Model& model);

/// Loads base (float32) and adapter and holds logits, gradients of everything trained and merged
/// weights against PEFT's. Errors are relative to the largest value of each tensor, at most 1e-5.
void expect_equals_peft(const std::string& base_dir, const std::string& adapter_dir,
                        bool with_dropout);

}  // namespace rematch::test
