#pragma once
#include <string>

#include "program/assembly/job.h"
#include "program/cli/arguments.h"

namespace rematch {

/// Arguments of a command that asks a checkpoint about records.
struct ScoredModelArguments : ConfigArguments {
  std::string records = {};  ///< in place of `custom.val_jsonl`; empty = those of the configuration
  std::string answer_format = {};  ///< empty = as configured
  bool force_base = false;         ///< as AdapterUse::force_base
};

/// Declares CONFIG|MODEL_DIR, JSONL, --set, --answer-format and --device.
void add_scored_model_arguments(CLI::App& command, ScoredModelArguments& arguments);

/// Refuses RECORDS MODEL in place of MODEL RECORDS.
/// @throws UserError (config)
void require_model_first(const std::string& model, const std::string& records);

/// The job of a command that asks a checkpoint about records: CONFIG as it is written, or a model,
/// adapter or run directory with a JSONL, which need none: prompts and answer length are then those
/// of the checkpoint (rematch_prompt.json), everything else has its default. Without a JSONL the
/// records of a run are its `custom.val_jsonl`.
/// @param checkpoint  in place of the one that the directory leads to; may be empty
/// @throws UserError (config) as load_config(), and for a model directory without a JSONL
JobSource load_scored_model(const ScoredModelArguments& arguments,
                            const std::string& checkpoint = "");

/// Takes rank 0's checkpoint of a directory: a run that is still training moves its links, so that
/// ranks may find different ones. Every rank calls it.
void agree_on_checkpoint(JobSource& source, const ScoredModelArguments& arguments, Group& group);

}  // namespace rematch
