#include "assembly/adapter_setup.h"

#include <fmt/core.h>

#include <cstdint>
#include <vector>

#include "checkpoint/hf_dir.h"
#include "checkpoint/peft.h"
#include "model/adapter.h"
#include "model/adapter_targets.h"
#include "model/families/family.h"

namespace rematch {
namespace {

AdapterTargets target_options(const TunerSettings& tuner, const ModelDescription& model) {
  AdapterTargets options{tuner.targets};
  options.is_frozen = [freeze = tuner.freeze, part_of = model.part_of](const std::string& parameter) {
    const ParameterPart part = part_of(parameter);
    return part == ParameterPart::kVit ? freeze.vit : part == ParameterPart::kAligner ? freeze.aligner : freeze.llm;
  };
  return options;
}

}  // namespace

void check_adapter_targets(const Settings& settings) {
  const std::string& directory = settings.model.directory;
  const ModelDescription description = describe_model(directory);
  select_targets(description, HfDir::open(directory)->names(), target_options(settings.tuner, description));
}

void attach_adapter(Model& model, const Settings& settings, const std::string& saved_dir, Terminal& terminal) {
  const TunerSettings& tuner = settings.tuner;
  std::vector<std::string> names;
  int64_t num_base_values = 0, num_values = 0;
  for (const NamedParameter& parameter : model.parameters()) {
    names.push_back(parameter.name);
    num_base_values += parameter.tensor.numel();
  }
  const AdapterSelection selection = select_targets(model.description(), names, target_options(tuner, model.description()));
  const bool all_linear = !tuner.targets.target_regex && tuner.targets.target_modules == std::vector<std::string>{"all-linear"};
  if (selection.num_frozen > 0 && !all_linear) {
    terminal.warn(fmt::format("{} targeted modules get no adapter: their part is frozen (tuner.freeze_*)", selection.num_frozen));
  }
  const auto adapter =
      Adapter::create(model, selection, {.lora = {tuner.lora}, .seed = settings.seed, .base_model = settings.model.directory});
  if (!saved_dir.empty()) adapter->set_values(read_peft_adapter(saved_dir), saved_dir);
  for (const NamedParameter& parameter : adapter->parameters()) num_values += parameter.tensor.numel();
  terminal.say(fmt::format("{} of rank {} on {} Linear layers: {} values are trained, {:.2f} % of the base model's {}",
                           tuner.lora.use_dora ? "DoRA" : "LoRA", tuner.lora.rank, selection.modules.size(), num_values,
                           100.0 * static_cast<double>(num_values) / static_cast<double>(num_base_values), num_base_values));
}

}  // namespace rematch
