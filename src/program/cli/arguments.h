#pragma once
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the name of the library
class App;
class Validator;
}  // namespace CLI

namespace rematch {

/// Arguments of a command that takes a configuration.
struct ConfigArguments {
  std::string config_path;
  std::vector<std::string> overrides = {};  ///< --set a.b.c=value, in order
  std::string device = "auto";              ///< --device
};

/// Declares CONFIG, --set and --device.
void add_config_arguments(CLI::App& command, ConfigArguments& arguments);
/// Declares --set.
void add_overrides(CLI::App& command, std::vector<std::string>& overrides);
/// Declares --device.
void add_device(CLI::App& command, std::string& device);

/// Accepts the numbers of a range, which CLI::Range does too, but no NaN.
/// @param unit  for messages
CLI::Validator finite_range(double least, double most, const std::string& unit = "");

}  // namespace rematch
