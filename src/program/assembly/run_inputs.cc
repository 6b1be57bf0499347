#include "program/assembly/run_inputs.h"

#include <filesystem>

#include "model/checkpoint/model_dir.h"

namespace rematch {

InputFiles run_inputs(const ConfigResult& config) {
  InputFiles inputs;
  for (const std::string& file : config.files) inputs.add(file);
  for (const EffectiveValue& value : config.effective) {
    std::error_code error;
    if (std::filesystem::is_regular_file(value.value, error)) inputs.add(value.value);
  }
  for (const TrainFile& file : config.settings.data.train_files) inputs.add(file.path);
  if (config.settings.data.val_jsonl) inputs.add(*config.settings.data.val_jsonl);
  add_model(inputs, config.settings.model.directory);
  return inputs;
}

}  // namespace rematch
