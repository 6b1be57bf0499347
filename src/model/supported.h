#pragma once
#include <string>

#include "model/families/description.h"

namespace rematch {

/// Rejects models that the ATen model and the native engine do not implement.
/// @param where  path of the config.json.
/// @throws UserError (data) naming the layer
void require_supported(const ModelDescription& model, const std::string& where);

}  // namespace rematch
