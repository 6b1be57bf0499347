#pragma once
#include <string>

#include "base/json.h"
#include "checkpoint/hf_dir.h"
#include "model/model.h"

namespace rematch {

/// Writes a model as a Hugging Face directory that transformers loads: weights in the model's
/// dtype, and everything else copied from the directory it came from. config.json is copied byte
/// for byte unless its dtype differs; then only those keys change.
/// @param source_dir  the directory the model was loaded from
/// @param directory   must exist (a StagedDirectory's path: this call is not atomic by itself)
/// @throws UserError (environment), e.g. on a full disk
void save_hf_model(const std::string& source_dir, const Model& model, const std::string& directory,
                   const SaveOptions& options = {});

/// The text of config.json with its dtype keys (`dtype`, `torch_dtype`, on top and in the towers)
/// set; the same text when they agree.
/// @param dtype_name  "float32" or "bfloat16"
std::string config_with_dtype(const std::string& config_text, const std::string& dtype_name,
                              const std::string& where);

/// Says in a config.json that embedding and head are two matrices (on top, and in the text tower
/// where older releases say it).
void untie_config(Json& config);

}  // namespace rematch
