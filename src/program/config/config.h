#pragma once
#include <string>
#include <vector>

#include "base/json.h"
#include "base/settings/settings.h"
#include "program/config/draft.h"

namespace rematch {

/// One key of the effective configuration.
struct EffectiveValue {
  std::string key;
  KeyValue typed;
  std::string value;   ///< as JSON text, text values unquoted
  std::string origin;  ///< "file:line:col", "--set a.b.c", "default", "derived from …"
};

/// The result of load_config.
struct ConfigResult {
  Settings settings;
  std::vector<Warning> warnings;
  std::vector<EffectiveValue> effective;  ///< every honoured key, in the table's order
  Strings files;                          ///< all files that were read, bases first
};

/// Reads, merges and checks a configuration and derives the values that depend on others.
/// @param path        YAML file; empty: only the overrides
/// @param overrides   `a.b.c=value` of --set; later ones win
/// @param world_size  number of ranks, for gradient_accumulation_steps
/// @param base        settings that files and overrides leave as they are
/// @throws UserError (config) with ALL problems of the files together
ConfigResult load_config(const std::string& path, const Strings& overrides = {}, int world_size = 1,
                         const Settings& base = {});

/// True for a path that is used as a configuration, not as a directory of a model or a run: a file,
/// or the name of a YAML file.
bool names_configuration(const std::string& path);

/// The directory of a run: output_dir[/version][/run_name]. Creates nothing.
/// @param resumes_latest  `resume_from_checkpoint: latest`: with add_version, returns the newest
/// version that has a checkpoint of this run, if there is one
std::string run_directory(const OutputSettings& output, bool resumes_latest = false);

/// The effective configuration as nested JSON with the key names of the YAML file (args.json).
Json effective_json(const ConfigResult& result);

/// The output of `rematch check --all`: effective values by section with their origins in aligned
/// columns, and each warning once.
std::string effective_text(const ConfigResult& result);

/// The output of `rematch check`: the files and the values that are set or derived, each with its
/// origin, in at most 80 columns and about 45 lines; defaults are only counted.
std::string brief_text(const ConfigResult& result);

}  // namespace rematch
