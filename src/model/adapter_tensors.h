#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/peft.h"
#include "model/families/description.h"
#include "model/lora.h"

namespace rematch {

/// The tensors of an adapter directory, sorted out and held against the base model.
struct AdapterTensors {
  std::map<std::string, LoraTensors> layers;  ///< by module; float32, without gradient
  std::map<std::string, at::Tensor> saved;    ///< parameters trained in full, by checkpoint name
};

/// Shape of a parameter of the base model; nullopt when it has none of that name.
using BaseShape = std::function<std::optional<std::vector<int64_t>>(const std::string& parameter)>;

/// @param where  what to call the adapter in errors
/// @throws UserError (data) for a tensor that belongs to nothing in the base model, has another shape than rank and base model say or no
///         float dtype, and for layers with a part missing or one too many
AdapterTensors sort_adapter_tensors(const PeftAdapter& adapter, const ModelDescription& model, const BaseShape& base_shape,
                                    const std::string& where);

}  // namespace rematch
