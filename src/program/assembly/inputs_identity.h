#pragma once
#include <string>
#include <utility>
#include <vector>

#include "program/assembly/job.h"

namespace rematch {

/// The configuration files of a model directory as pairs for require_equal(): for a JSON object its
/// values, as "config.json: text_config/hidden_size" and value; for other files the name and a
/// hash.
std::vector<std::pair<std::string, std::string>> model_files_identity(const std::string& model_dir);

/// Checks that all ranks read the same inputs: values of all parameters (by sampled_hash),
/// configuration files of the model, records, synonyms, prompts. Every rank calls it, before an
/// engine starts.
/// @throws UserError (environment) on every rank, with each file and key that differs
void meet_with_inputs(const Job& job, const Model& model);

}  // namespace rematch
