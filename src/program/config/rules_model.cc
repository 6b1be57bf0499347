// Rules for the model, its lengths and its prompts.
#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/path_from.h"
#include "base/text.h"
#include "learn/resume/find_model.h"
#include "model/families/family.h"
#include "program/config/prompt_file.h"
#include "program/config/rules.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

void apply_length_rules(Draft& config) {
  const std::string cap = "global_max_length";
  const std::vector<std::string> others = {"model.max_model_len", "template.max_length"};
  for (const std::string& other : others) {
    if (config.is_null(cap) && config.is_given(other))
      config.derive(cap, config.json(other), other);
  }
  if (config.is_null(cap)) return;
  for (const std::string& other : others) {
    if (config.is_given(other) && config.integer(other) != config.integer(cap)) {
      config.warn(fmt::format("`{}: {}` is not used: `{}: {}` limits segments and rows", other,
                              config.integer(other), cap, config.integer(cap)),
                  other);
    }
    if (!config.is_given(other) || config.integer(other) != config.integer(cap))
      config.derive(other, config.json(cap), cap);
  }
  const std::string engine = kRolloutMatching + ".vllm.max_model_len";
  if (!config.is_given(engine)) config.derive(engine, config.json(cap), cap);
}

void apply_dtype_rule(Draft& config) {
  if (config.is_null("training.bf16") || !config.boolean("training.bf16")) return;
  const std::string name = "model.torch_dtype";
  if (config.is_given(name) && config.text(name) == "float32") {
    config.problem("`training.bf16` and `model.torch_dtype` contradict each other", "training.bf16",
                   fmt::format("bf16: true means bfloat16, but torch_dtype is float32 ({})",
                               config.origin(name)),
                   "remove one of the two");
  } else if (!config.is_given(name) || config.text(name) == "auto") {
    config.derive(name, "bfloat16", "training.bf16");
  }
}

void apply_four_bit_rule(Draft& config) {
  if (config.boolean("model.load_in_4bit")) return;
  for (const char* name : {"model.bnb_4bit_quant_type", "model.bnb_4bit_use_double_quant",
                           "model.llm_int8_skip_modules"}) {
    if (config.is_given(name) && config.json(name) != Values().json(name))
      config.warn_no_effect(name, "`model.load_in_4bit` is not set");
  }
}

/// Takes the checkpoint of a run directory, and the directory that a link of a run leads to now:
/// the configuration that a run stores must name what it started from.
void resolve_model(Draft& config) {
  const std::string key = "model.model";
  if (config.is_null(key)) return;
  const std::string named = config.text(key);
  const NamedModel model = find_model(named);
  if (model.path == named) return;
  if (!model.note.empty())
    config.warn(fmt::format("`model.model: {}` is a run directory: {}", named, model.note), key);
  config.set(key, model.path, fmt::format("{} ({})", named, config.origin(key)), true);
}

void check_model_directory(Draft& config) {
  if (config.is_null("model.model")) return;
  const std::string name = config.text("model.model");
  if (!looks_like_hub_id(name)) return;
  const std::string local = name.substr(name.find('/') + 1);
  config.problem(fmt::format("`model.model: {}` is not a directory", name), "model.model",
                 "it looks like a Hugging Face hub id; models are not downloaded",
                 fmt::format("run `hf download {} --local-dir {}` and set `model.model: {}`", name,
                             local, local));
}

void check_template(Draft& config) {
  const std::string name = config.text("template.template");
  std::vector<std::string> titles;
  for (const Family& family : families()) {
    if (name == family.model_type) return;
    titles.push_back(fmt::format("`{}` ({})", family.model_type, family.title));
  }
  std::string found = "the model type could not be read from config.json";
  if (!config.is_null("model.model")) {
    try {
      const Json model = read_json_file(join_path(config.text("model.model"), "config.json"));
      if (const auto type = model.find("model_type"); type != model.end() && type->is_string())
        found = "config.json says model_type " + type->get<std::string>();
    } catch (const UserError&) {
      // The model directory is checked elsewhere; here it only makes the message more exact.
    }
  }
  config.problem(fmt::format("`template.template: {}` is not supported", name), "template.template",
                 found,
                 fmt::format("set `template.template` to the family of the checkpoint, one of {}",
                             join(titles, ", ")));
}

void read_user_prompt(Draft& config) {
  const std::string key = "custom.user_prompt";
  if (!config.is_given(key)) return;
  const std::string path = config.text(key);
  if (!path.ends_with(".txt")) return;
  try {
    config.set(key, read_prompt_file(path), fmt::format("{} ({})", path, config.origin(key)), true);
  } catch (const UserError& error) {
    const Problem& found = error.problems().front();
    config.problem(found.error, key, found.what, found.fix);
  }
}

}  // namespace

void apply_model_rules(Draft& config) {
  apply_length_rules(config);
  apply_dtype_rule(config);
  apply_four_bit_rule(config);
  resolve_model(config);
  check_model_directory(config);
  check_template(config);
  read_user_prompt(config);
}

}  // namespace rematch
