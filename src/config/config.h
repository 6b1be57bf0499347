#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "config/values.h"
#include "settings/settings.h"

namespace rematch {

/// A row of the effective configuration.
struct EffectiveValue {
  std::string key;
  std::string value;   ///< as JSON text, text values unquoted
  std::string origin;  ///< "file:line:col", "--set a.b.c", "default", "derived from …"
};

/// The result of load_config.
struct ConfigResult {
  Settings settings;
  std::vector<Warning> warnings;
  std::vector<EffectiveValue> effective;  ///< every honoured key, in the table's order
  std::vector<std::string> files;         ///< every file read, bases first
  std::shared_ptr<const Values> values;   ///< the values themselves, for effective_json
};

/// Reads, merges and checks a configuration, with everything resolved that follows from it.
/// @param path        YAML file; empty: the overrides are all. @param overrides  `a.b.c=value` of
/// --set, later ones win
/// @param world_size  ranks, for gradient_accumulation_steps
/// @throws UserError (config) with ALL problems of the files together
ConfigResult load_config(const std::string& path, const std::vector<std::string>& overrides = {},
                         int world_size = 1);

/// The effective configuration as nested JSON by the users' own key names (args.json).
Json effective_json(const ConfigResult& result);

/// The output of `rematch check`: effective values by section with their origins, aligned, and each
/// warning once.
std::string effective_text(const ConfigResult& result);

/// docs/config.md, generated from the table of keys.
std::string config_markdown();

}  // namespace rematch
