#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/checkpoint/peft.h"
#include "model/families/description.h"
#include "model/lora.h"

namespace rematch {

/// Suffix of a module's name in the name of its token rows.
inline constexpr const char* kTokenRows = ".token_adapter.trainable_tokens_delta";

/// Token rows that an adapter trains.
struct TokenRowTensors {
  std::vector<int64_t> token_ids;
  at::Tensor rows_KH;  ///< one for each id
};

/// The tensors of an adapter directory, sorted and checked against the base model.
struct AdapterTensors {
  std::map<std::string, LoraTensors> layers;  ///< by module; float32, without gradient
  /// parameters trained in full, by checkpoint name
  std::map<std::string, at::Tensor> saved;
  /// by module: embedding, head; float32; only the embedding if tied
  std::map<std::string, TokenRowTensors> token_rows;
  /// The base model ties embedding and head, but the adapter trains them separately: `saved` may
  /// have both.
  bool unties = false;
};

/// Shape of a parameter of the base model; nullopt if it has none with that name, e.g. a tied head.
using BaseShape = std::function<std::optional<std::vector<int64_t>>(const std::string& parameter)>;

/// @param where  the adapter's name in errors
/// @throws UserError (data) for a tensor without a counterpart in the base model, with the wrong
/// shape for rank and base model, or without a float dtype, and for layers with a missing or
/// superfluous tensor
AdapterTensors sort_adapter_tensors(const PeftAdapter& adapter, const ModelDescription& model,
                                    const BaseShape& base_shape, const std::string& where);

}  // namespace rematch
