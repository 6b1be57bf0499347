#pragma once
#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "model/checkpoint/safetensors.h"
#include "model/model.h"

namespace rematch::test {

/// Answers of transformers next to a tiny checkpoint (dev/goldens/model_tiny.py).
class OracleAnswers {
 public:
  /// @param model_dir  its answers lie in model_dir + ".answers.safetensors"
  explicit OracleAnswers(const std::string& model_dir)
      : file_(SafetensorsFile::open(model_dir + ".answers.safetensors")) {}

  /// Names of the cases of every script; gradients belong to the last one.
  static const std::vector<std::string>& cases();
  /// Names of the further cases `length_N`, texts of chosen lengths.
  std::vector<std::string> length_cases() const;
  RowInput row(const std::string& name) const;
  /// Pixels by the script's formula.
  VisionInput images(const std::string& name, const ModelDescription& config) const;
  at::Tensor logits(const std::string& name) const { return file_->tensor(name + ".logits"); }
  at::Tensor gradient(const std::string& parameter) const {
    return file_->tensor("grad." + parameter);
  }
  int64_t column_stride() const { return file_->tensor("stride").item<int64_t>(); }

 private:
  std::shared_ptr<SafetensorsFile> file_;
};

/// Pixel rows anyone can compute: ((i·7919 + k·104729 + (i·k) % 251) % 256 − 127.5) / 127.5.
at::Tensor formula_pixels(int64_t num_rows, int64_t width);

/// Loads the checkpoint in float32 and compares logits of every case (3e-5 of the largest) and the
/// gradient of every parameter (1e-4 of max(norm, 1e-6)) with the answers. The bound is that of
/// transformers' own rounding: its float32 logits of random Qwen3.5 checkpoints are up to 2.3e-5
/// from its float64 ones, and at most 1.1e-5 from ours.
void expect_equals_transformers(const std::string& model_dir);

}  // namespace rematch::test
