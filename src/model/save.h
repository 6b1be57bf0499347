#pragma once
#include <string>

#include "base/json.h"
#include "model/checkpoint/hf_dir.h"
#include "model/model.h"

namespace rematch {

/// Writes a model as a Hugging Face directory that transformers loads: weights in the model's
/// dtype; copies everything else from `source_dir`. config.json changes only in its dtype keys.
/// @param source_dir  directory that the model was loaded from
/// @param directory   must exist; not atomic: use the path of a StagedDirectory
/// @throws UserError (environment), e.g. on a full disk
void save_hf_model(const std::string& source_dir, const Model& model, const std::string& directory,
                   const SaveOptions& options = {});

/// The text of config.json with its dtype keys (`dtype`, `torch_dtype`, at the top level and in the
/// towers) set; unchanged if they already match.
/// @param dtype_name  "float32" or "bfloat16"
std::string config_with_dtype(const std::string& config_text, const std::string& dtype_name,
                              const std::string& where);

/// Sets tie_word_embeddings to false in a config.json (at the top level, and in the text tower as
/// in older releases).
void untie_config(Json& config);

}  // namespace rematch
