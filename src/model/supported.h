#pragma once
#include <string>

#include "model/families/description.h"

namespace rematch {

/// Refuses what a description may say and neither the ATen model nor the native engine computes yet.
/// @param where  of the config.json. @throws UserError (data) naming the layer
void require_supported(const ModelDescription& model, const std::string& where);

}  // namespace rematch
