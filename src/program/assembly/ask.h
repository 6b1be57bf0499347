#pragma once
#include <optional>
#include <string>
#include <vector>

#include "model/text/stored_prompt.h"
#include "program/config/config.h"

namespace rematch {

/// Begins the last line of a run's effective_config.txt: the directory that its relative paths are
/// in.
inline constexpr const char* kStartedIn = "\nstarted in: ";

/// Facts that a checkpoint states about itself.
struct Checkpoint {
  std::string path = {};  ///< directory of a model, or of an adapter
  std::string base = {};  ///< directory of the model: `path`, or what the adapter belongs on
  bool is_adapter = false;
  /// how the base was packed while an adapter was trained on it; nullopt = not
  std::optional<FourBitSettings> packed = {};
  std::optional<StoredPrompt> prompt = {};
  std::string run = {};   ///< directory of the run that it belongs to; empty = none
  std::string note = {};  ///< names the chosen checkpoint of a run; may be empty
};

/// `checkpoint-N` of the run itself, RUN-checkpoint-N of another one, so that evaluations of both
/// may lie side by side. Any other model has its directory's name.
/// @param run_dir  may be empty
std::string name_of_evaluated(const std::string& model_dir, const std::string& run_dir = "");

/// Finds a checkpoint that a user named: a model, an adapter or a run (find_model). A model is not
/// checked.
/// @param adapter  to use with the model; empty = none, or what the user named is one
/// @throws UserError for an adapter or a stored prompt that cannot be read
Checkpoint find_checkpoint(const std::string& model, const std::string& adapter = "");

/// A question of a command; anything empty is as stored with the checkpoint, or has its default.
struct Asked {
  std::string model = {};    ///< model, adapter or run; for records also a configuration
  std::string adapter = {};  ///< to use with `model`; empty = none
  std::string records = {};  ///< JSONL; empty: `custom.val_jsonl` of configuration or run
  std::string answer_format = {};
  PromptSettings texts = {};
  int max_new_tokens = 0;
  std::string backend = "native";
  Strings overrides = {};   ///< `--set a.b.c=value`; they win
  bool force_base = false;  ///< as AdapterUse::force_base
};

/// The settings of a question without its overrides: greedy answers to the prompt that the
/// checkpoint was trained with, on a base that is packed as in training. Results of a run's
/// checkpoint belong to the run.
/// @throws UserError (data) for a stored answer format that is not known
Settings settings_to_ask(const Checkpoint& checkpoint, const Asked& asked);

/// A configuration, or a checkpoint that a command asks.
struct JobSource {
  ConfigResult config;
  Checkpoint checkpoint = {};  ///< unset in training
  bool force_base = false;     ///< as AdapterUse::force_base
};

/// False if the question is asked on other weights than the checkpoint was trained to: on a forced
/// base, or on one that is packed in another way.
bool has_own_weights(const JobSource& source);

/// The settings of decoding and matching that are not the defaults, a line each. Scores with other
/// ones cannot be compared.
std::string scoring_text(const ConfigResult& config);

/// A question about records: that of a configuration as it is written, or of a checkpoint, which
/// needs none: its answers are decoded and matched as the evaluations of its run. Images are as
/// large as those that an adapter was trained with.
/// @throws UserError (config) as load_config(), and for a model without records; (environment) for
/// a path that leads nowhere; (data) if the base cuts images otherwise than the base of the adapter
JobSource ask_about_records(const Asked& asked);

/// The same about images, which need no configuration. Answers are greedy, with the run's penalty
/// and guard of repeats.
JobSource ask_about_images(const Asked& asked);

}  // namespace rematch
