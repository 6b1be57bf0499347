#pragma once
#include <optional>
#include <string>

#include "base/settings/model.h"

namespace rematch {

/// Quantisation of a model directory's weights, from `quantization_config` of its config.json;
/// nullopt = none. Only bitsandbytes with 4 bits can be read; which Linears are packed is
/// up to the tensors (model/four_bit_reader.h).
/// @throws UserError (data) for any other quantisation, by name, and for damaged values
std::optional<FourBitSettings> stored_quantisation(const std::string& model_dir);

/// The text of a config.json without its quantisation, for weights of full precision.
std::string config_without_quantisation(const std::string& config_text, const std::string& where);

}  // namespace rematch
