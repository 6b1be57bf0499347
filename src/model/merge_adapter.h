#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include <ATen/core/ScalarType.h>

namespace rematch {

struct MergeOptions {
  std::string adapter_dir;
  /// empty = as named in adapter_config.json, relative to the current directory
  std::string base_dir;
  std::string output_dir;  ///< appears complete or not at all
  /// of the weights written; none = as the base model stores them
  std::optional<at::ScalarType> dtype;
};

/// The result of merge_adapter.
struct MergedAdapter {
  std::string base_dir;
  int64_t num_layers = 0;    ///< Linears with an adapter
  int64_t num_replaced = 0;  ///< parameters that the adapter replaces in full
  int64_t num_rows = 0;      ///< rows of tokens that it replaces
  /// the adapter trains embedding and head of a tied model apart: the result has both
  bool untied = false;
};

/// Writes base model and adapter as one full Hugging Face checkpoint; the other files come from the
/// base model, but for image-processor files that the adapter has of its own.
/// @throws UserError (config) without a base model, or when the output directory is not empty;
/// (data) when the adapter does not fit the
///         base model
/// Cost: one read and one write of the weights; memory for one weights file.
MergedAdapter merge_adapter(const MergeOptions& options);

}  // namespace rematch
