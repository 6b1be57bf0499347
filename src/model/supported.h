#pragma once
#include <string>

#include "model/families/description.h"

namespace rematch {

/// Rejects descriptions that neither the ATen model nor the native engine implements.
/// @param where  of the config.json. @throws UserError (data) naming the layer
void require_supported(const ModelDescription& model, const std::string& where);

}  // namespace rematch
