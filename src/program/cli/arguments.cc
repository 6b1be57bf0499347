#include "program/cli/arguments.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "learn/estep/answer/answer_format.h"

namespace rematch {

void add_config_arguments(CLI::App& command, ConfigArguments& arguments) {
  command.add_option("CONFIG", arguments.config_path, "YAML configuration")->required();
  add_overrides(command, arguments.overrides);
  add_device(command, arguments.device);
}

void add_ask_arguments(CLI::App& command, AskArguments& arguments) {
  Asked& asked = arguments.asked;
  command
      .add_option(
          "CONFIG|MODEL_DIR", asked.model,
          "YAML configuration, or a checkpoint or adapter as it is, or a run (its best checkpoint)")
      ->required();
  command.add_option("JSONL", asked.records,
                     "records to ask about; default: custom.val_jsonl of the configuration or run");
  add_overrides(command, asked.overrides);
  add_reading(command, arguments);
}

void add_reading(CLI::App& command, AskArguments& arguments) {
  command
      .add_option("--answer-format", arguments.asked.answer_format,
                  "how answers are written; default: that of the configuration, else of the "
                  "checkpoint")
      ->check(CLI::IsMember(answer_formats().names()));
  command.add_flag("--force-base", arguments.asked.force_base, kForceBaseHelp);
  add_device(command, arguments.device);
}

void add_overrides(CLI::App& command, Strings& overrides) {
  command
      .add_option("--set", overrides,
                  "override a YAML key by its own name: --set a.b.c=value (repeatable)")
      ->allow_extra_args(false);
}

void add_device(CLI::App& command, std::string& device) {
  command.add_option("--device", device, "auto (CUDA when there is one), cpu, cuda or cuda:N")
      ->capture_default_str();
}

CLI::Validator finite_range(double least, double most, const std::string& unit) {
  const std::string range = fmt::format("a number{} from {:.15g} to {:.15g}",
                                        unit.empty() ? "" : " of " + unit, least, most);
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        const bool fits = end != text.c_str() && *end == '\0' && value >= least && value <= most;
        return fits ? "" : fmt::format("{} is not {}", text, range);
      },
      fmt::format("FLOAT in [{:g} - {:g}]", least, most));
}

CLI::Validator file_ending(const std::string& ending) {
  return CLI::Validator(
      [=](std::string& path) -> std::string {
        const std::string own = std::filesystem::path(path).extension().string();
        return own.empty() || lower_case(own) == ending
                   ? ""
                   : fmt::format("{} does not end with {}", path, ending);
      },
      "");
}

}  // namespace rematch
