#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include <ATen/core/ScalarType.h>

namespace rematch {

struct MergeOptions {
  std::string adapter_dir;
  /// empty = the name in adapter_config.json, relative to the current directory
  std::string base_dir;
  std::string output_dir;  ///< written atomically
  /// of the written weights; nullopt = as in the base model
  std::optional<at::ScalarType> dtype;
  bool force_base = false;  ///< as AdapterUse::force_base
};

/// The result of merge_adapter.
struct MergedAdapter {
  std::string base_dir;
  int64_t num_layers = 0;    ///< Linears with an adapter
  int64_t num_replaced = 0;  ///< parameters that the adapter replaces in full
  int64_t num_rows = 0;      ///< token rows that it replaces
  /// true if the adapter trains embedding and head of a tied model separately: the result has both
  bool untied = false;
  std::string base_note = {};  ///< of check_adapter_base()
  /// Linears that were in 4 bits in training, whose dequantised values the result has
  int64_t num_dequantised = 0;
  bool packed_at_load = false;  ///< they are stored in full, and `model.load_in_4bit` packed them
};

/// Writes base model and adapter as one full Hugging Face checkpoint, never in 4 bits: a weight
/// that was in 4 bits in training is the dequantised one plus the adapter's update. Other files
/// come from the base model, except image-processor files if the adapter has any.
/// @throws UserError (config) without a base model, or if the output directory is not empty; (data)
/// if the adapter does not match the base model, or was trained on other weights
/// Cost: one read and one write of the weights; memory for one weights file.
MergedAdapter merge_adapter(const MergeOptions& options);

}  // namespace rematch
