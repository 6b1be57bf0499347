#include "cli/model_config.h"

#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "estep/answer/answer_format.h"
#include "resume/run_links.h"
#include "text/stored_prompt.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

/// `--set` of a text. A JSON string is a double-quoted scalar of YAML.
std::string set_text(const std::string& key, const std::string& text) {
  return key + "=" + python_json_string(text);
}

std::string name_of(const std::string& directory) {
  const fs::path path = fs::path(directory).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

std::vector<std::string> settings_for(const std::string& model_dir, const std::string& records) {
  std::vector<std::string> settings{set_text("model.model", model_dir),
                                    "custom.trainer_variant=rollout_matching_sft",
                                    set_text("custom.train_jsonl", records),
                                    set_text("custom.val_jsonl", records),
                                    "custom.extra.rollout_matching.rollout_backend=native",
                                    "training.output_dir=output",
                                    set_text("training.run_name", name_of(model_dir))};
  const std::string length = "custom.extra.rollout_matching.max_new_tokens=";
  const std::optional<StoredPrompt> stored = read_stored_prompt(model_dir);
  settings.push_back(length + std::to_string(stored ? stored->max_new_tokens : 1024));
  if (!stored) return settings;
  settings.push_back(std::string("template.image_backend=") + name_of(stored->image_backend));
  if (stored->texts.user_prompt)
    settings.push_back(set_text("custom.user_prompt", *stored->texts.user_prompt));
  if (stored->texts.system_prompt)
    settings.push_back(set_text("template.system", *stored->texts.system_prompt));
  return settings;
}

}  // namespace

ConfigResult load_evaluation_config(const RunArguments& arguments) {
  const bool is_model = fs::is_directory(arguments.config_path);
  if (is_model && arguments.records.empty()) {
    throw UserError(ErrorKind::kConfig,
                    {.error = "a model directory needs records to be asked about",
                     .where = arguments.config_path,
                     .what = "no JSONL was given after it",
                     .fix = "give the records too, as in `rematch eval MODEL data/val.jsonl`, or a "
                            "YAML configuration"});
  }
  std::vector<std::string> overrides;
  if (is_model) {
    const NamedModel model = find_model(arguments.config_path);
    if (!model.note.empty()) std::cerr << model.note << "\n";
    overrides = settings_for(model.path, arguments.records);
  } else if (!arguments.records.empty()) {
    overrides = {set_text("custom.val_jsonl", arguments.records)};
  }
  if (!arguments.answer_format.empty()) {
    overrides.push_back("custom.answer_format=" + arguments.answer_format);
    if (!answer_formats().find(arguments.answer_format).has_coord_tokens) {
      // Keys of training with coord tokens, which nothing is trained with here.
      overrides.push_back("custom.extra.rollout_matching.target_policy=rewrite");
      overrides.push_back("custom.coord_soft_ce_w1.enabled=false");
    }
  }
  overrides.insert(overrides.end(), arguments.overrides.begin(), arguments.overrides.end());
  return load_config(is_model ? "" : arguments.config_path, overrides);
}

}  // namespace rematch
