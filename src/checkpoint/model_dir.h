#pragma once
#include <string>
#include <vector>

#include "base/output_file.h"

namespace rematch {

/// Checks that `path` is a directory a model can be read from.
/// @throws UserError (config) otherwise; for what looks like a hub id (`owner/name`) the fix is the
/// `hf download` command to run
void require_model_dir(const std::string& path);

/// Adds the files of a model or an adapter, and of the adapter's base model: weights and what
/// copy_companions() copies; none of a missing directory.
void add_model(InputFiles& inputs, const std::string& directory);

/// Copies what belongs to a model besides its weights, byte for byte: config, tokenizer, chat
/// templates, processor, README, LICENSE, *.py.
/// @param except  file names that the caller writes itself
void copy_companions(const std::string& source_dir, const std::string& directory,
                     const std::vector<std::string>& except = {});

}  // namespace rematch
