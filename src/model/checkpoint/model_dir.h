#pragma once
#include <string>
#include <vector>

#include "base/output_file.h"

namespace rematch {

/// Checks that `path` is a model directory.
/// @throws UserError (environment) if nothing is there, (config) for anything else; for a hub id
/// (`owner/name`) the fix is the `hf download` command to run
void require_model_dir(const std::string& path);

/// @throws UserError (config) if `directory` exists and is not empty
void require_empty_output(const std::string& directory);

/// Adds the files of a model or an adapter, and of the adapter's base model: weights and the files
/// that copy_companions() copies. A missing directory has no files.
void add_model(InputFiles& inputs, const std::string& directory);

/// Copies the files of a model other than its weights: config, tokenizer, chat templates,
/// processor, README, LICENSE, *.py.
/// @param except  file names that the caller writes itself
void copy_companions(const std::string& source_dir, const std::string& directory,
                     const Strings& except = {});

}  // namespace rematch
