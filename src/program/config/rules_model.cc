// Rules for the model, its lengths and its prompts.
#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"
#include "base/path_from.h"
#include "base/text.h"
#include "learn/resume/find_model.h"
#include "model/families/family.h"
#include "program/config/draft.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

void apply_length_rules(Draft& config) {
  const std::string cap = "global_max_length";
  const Strings others = {"model.max_model_len", "template.max_length"};
  for (const std::string& other : others) {
    if (config.is_null(cap) && config.is_given(other))
      config.derive(cap, config.value(other), other);
  }
  if (config.is_null(cap)) return;
  for (const std::string& other : others) {
    if (config.is_given(other) && config.integer(other) != config.integer(cap)) {
      config.warn(fmt::format("`{}: {}` is not used: `{}: {}` limits segments and rows", other,
                              config.integer(other), cap, config.integer(cap)),
                  other);
    }
    if (!config.is_given(other) || config.integer(other) != config.integer(cap))
      config.derive(other, config.value(cap), cap);
  }
  const std::string engine = kRolloutMatching + ".vllm.max_model_len";
  if (!config.is_given(engine)) config.derive(engine, config.value(cap), cap);
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
    if (config.is_given(name) && config.is_changed(name))
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
  const std::string key = "template.template", name = config.text(key);
  std::string found = "the model type could not be read from config.json", type = name;
  if (!config.is_null("model.model")) {
    try {
      const Json model = read_json_file(join_path(config.text("model.model"), "config.json"));
      type = model.at("model_type");
      found = "config.json says model_type " + type;
    } catch (const std::exception&) {
      // The model directory is checked elsewhere; here it only makes the message more exact.
    }
  }
  Strings titles;
  for (const Family& family : families()) {
    if (name == family.model_type) {
      if (name != type && config.is_given(key)) config.warn_no_effect(key, found);
      return;
    }
    titles.push_back(fmt::format("`{}` ({})", family.model_type, family.title));
  }
  config.problem(
      fmt::format("`{}: {}` is not supported", key, name), key, found,
      fmt::format("set `{}` to the family of the checkpoint, one of {}", key, join(titles, ", ")));
}

/// Reads the file that a prompt names, without its byte order mark and the white space at its ends.
void read_prompt(Draft& config, const std::string& key) {
  constexpr size_t kMostBytes = size_t{1} << 20;
  if (!config.is_given(key) || !config.text(key).ends_with(".txt")) return;
  const std::string path = config.text(key);
  std::string text;
  try {
    text = read_file(path);
  } catch (const UserError& error) {
    return config.problem(
        "the prompt file cannot be read", key, error.problems().front().what,
        "correct the path (relative to the current directory), or write the text itself");
  }
  if (text.size() > kMostBytes) {
    return config.problem(
        "the prompt file is too large", key,
        fmt::format("{} has {} bytes; the limit is {}", path, text.size(), kMostBytes),
        "check that this is the prompt");
  }
  if (!is_valid_utf8(text))
    return config.problem("the prompt file is not UTF-8 text", key, path, "save it as UTF-8");
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  text = python_strip(text);  // editors end files with a newline
  if (text.empty())
    return config.problem("the prompt file is empty", key, path,
                          "write the prompt into it, or remove the key for the built-in prompt");
  config.set(key, std::move(text), fmt::format("{} ({})", path, config.origin(key)), true);
}

}  // namespace

void apply_model_rules(Draft& config) {
  apply_length_rules(config);
  apply_dtype_rule(config);
  apply_four_bit_rule(config);
  resolve_model(config);
  check_model_directory(config);
  check_template(config);
  for (const char* key : {"template.system", "custom.user_prompt"}) read_prompt(config, key);
}

}  // namespace rematch
