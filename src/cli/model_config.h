#pragma once
#include <string>

#include "cli/commands.h"
#include "config/config.h"

namespace rematch {

class Session;

/// Refuses RECORDS MODEL in place of MODEL RECORDS. @throws UserError (config)
void require_model_first(const std::string& model, const std::string& records);

/// Questions of a command about records.
struct AskedModel {
  ConfigResult config;
  std::string path;       ///< `model.model`, or the adapter on top of it
  bool is_named = false;  ///< as a directory, not by a configuration
  bool is_adapter = false;
  std::string note = {};  ///< names the chosen checkpoint of a run; may be empty

  /// Attaches the adapter, if it is one, to the session's model.
  void load_adapter(const Session& session) const;
};

/// The configuration of a command that asks a checkpoint about records: CONFIG as it is written, or
/// a model, adapter or run directory with a JSONL, which need none: prompts and answer length are
/// then those of the checkpoint (rematch_prompt.json), everything else has its default. Without a
/// JSONL the records of a run are its `custom.val_jsonl`.
/// @throws UserError (config) as load_config(), and for a model directory without a JSONL
AskedModel load_asked_model(const RunArguments& arguments);

}  // namespace rematch
