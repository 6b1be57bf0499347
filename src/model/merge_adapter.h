#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include <ATen/core/ScalarType.h>

namespace rematch {

struct MergeOptions {
  std::string adapter_dir;
  std::string base_dir;                 ///< empty = what adapter_config.json names, relative to the current directory
  std::string output_dir;               ///< appears complete or not at all
  std::optional<at::ScalarType> dtype;  ///< of the weights written; none = as the base model stores them
};

/// What merge_adapter did.
struct MergedAdapter {
  std::string base_dir;
  int64_t num_layers = 0;    ///< Linears with an adapter
  int64_t num_replaced = 0;  ///< parameters that the adapter holds in full
};

/// Writes the full Hugging Face checkpoint that base model and adapter are together; companions come from the base model.
/// @throws UserError (config) when there is no base model, or the output directory holds something; (data) when the adapter does not fit it
/// Cost: one read and one write of the weights; memory for one weights file.
MergedAdapter merge_adapter(const MergeOptions& options);

}  // namespace rematch
