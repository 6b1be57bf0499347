#pragma once
#include <string>
#include <vector>

#include "program/assembly/ask.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the name of the library
class App;
class Validator;
}  // namespace CLI

namespace rematch {

/// Arguments of a command that takes a configuration.
struct ConfigArguments {
  std::string config_path;
  Strings overrides = {};       ///< --set a.b.c=value, in order
  std::string device = "auto";  ///< --device
};

/// Arguments of a command that asks a checkpoint about records.
struct AskArguments {
  Asked asked;
  std::string device = "auto";
};

/// Help of `--force-base`, which every command has that uses an adapter.
inline constexpr const char* kForceBaseHelp =
    "use an adapter with a base model that differs from the one it was trained on: a combination "
    "that was never trained";

/// Declares CONFIG|MODEL_DIR, JSONL, --set and add_reading().
void add_ask_arguments(CLI::App& command, AskArguments& arguments);
/// Declares --answer-format, --force-base and --device.
void add_reading(CLI::App& command, AskArguments& arguments);
/// Declares CONFIG, --set and --device.
void add_config_arguments(CLI::App& command, ConfigArguments& arguments);
/// Declares --set.
void add_overrides(CLI::App& command, Strings& overrides);
/// Declares --device.
void add_device(CLI::App& command, std::string& device);

/// Accepts the numbers of a range, which CLI::Range does too, but no NaN.
/// @param unit  for messages
CLI::Validator finite_range(double least, double most, const std::string& unit = "");

/// Accepts the name of an output that does not promise another format: one with this ending, in any
/// letter case, or without any.
CLI::Validator file_ending(const std::string& ending);

}  // namespace rematch
