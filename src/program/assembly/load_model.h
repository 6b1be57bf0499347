#pragma once
#include <vector>

#include "base/settings/settings.h"
#include "model/model.h"
#include "model/text/tokenizer.h"

namespace rematch {

/// Finds a mistyped adapter target before data and weights are read. Reads the headers of the
/// weights.
/// @throws UserError (config) as select_targets(); as Model::load()
void check_adapter_targets(const Settings& settings, const Tokenizer& tokenizer);

/// True if weights of the base model are in 4 bits: stored so, or quantised while they are loaded.
bool is_in_four_bits(const ModelSettings& model);

/// @throws UserError (config) for full fine-tuning or `zero_stage: 3` of a model whose weights are
/// in 4 bits
void require_adapter_in_four_bits(const Settings& settings);

/// Parameters of the model and of its adapter, each once.
std::vector<NamedParameter> all_parameters(const Model& model);

}  // namespace rematch
