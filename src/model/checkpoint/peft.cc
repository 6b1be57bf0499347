#include "model/checkpoint/peft.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "base/missing_path.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr const char* kConfigFile = "adapter_config.json";
constexpr const char* kWeightsFile = "adapter_model.safetensors";
const std::string kPrefix = "base_model.model.";
constexpr const char* kPacked = "load_in_4bit";  // of rematch_base.json

/// Keys that do not affect the result of a saved adapter.
const Strings& inert_keys() {
  static const Strings kKeys = {
      "auto_mapping", "base_model_name_or_path", "inference_mode", "revision", "task_type",
      "peft_version", "megatron_config", "megatron_core", "loftq_config", "corda_config",
      "eva_config", "lora_ga_config", "exclude_modules", "runtime_config", "qalora_group_size",
      // ms-swift
      "lora_dtype", "lorap_lr_ratio", "lorap_emb_lr", "model_key_mapping", "group_size",
      "use_merged_linear", "enable_lora"};
  return kKeys;
}

/// Keys that are read or checked individually.
const Strings& read_keys() {
  static const Strings kKeys = {"peft_type",
                                "r",
                                "lora_alpha",
                                "lora_dropout",
                                "use_dora",
                                "bias",
                                "target_modules",
                                "layers_to_transform",
                                "layers_pattern",
                                "modules_to_save",
                                "init_lora_weights",
                                "fan_in_fan_out",
                                "ensure_weight_tying",
                                "trainable_token_indices"};
  return kKeys;
}

bool is_one_of(const std::string& name, const Strings& names) { return contains(names, name); }

// null, false, 0, "", [] and {} disable a variant.
bool is_off(const Json& value) {
  return value.is_null() || (value.is_boolean() && !value.get<bool>()) ||
         (value.is_number() && value == 0) ||
         ((value.is_string() || value.is_array() || value.is_object()) &&
          (value.empty() || value == ""));
}

[[noreturn]] void refuse_adapter(const std::string& path, std::string error, std::string what) {
  throw data_error({.error = std::move(error),
                    .where = path,
                    .what = std::move(what),
                    .fix = "merge that adapter with PEFT (`merge_and_unload`, "
                           "`save_pretrained`) and use the merged model"});
}

void refuse_other_adapters(JsonFields& fields, const Json& root, const std::string& path) {
  if (const std::string type = fields.text_or("peft_type", ""); type != "LORA") {
    refuse_adapter(path, "the adapter is neither LoRA nor DoRA",
                   fmt::format("peft_type is \"{}\"", type));
  }
  if (const std::string bias = fields.text_or("bias", ""); bias != "none" && !bias.empty()) {
    refuse_adapter(path, "an adapter with biases is not supported", "bias: " + bias);
  }
  // These split the base weight at initialisation, so the adapter does not match the unmodified
  // base model.
  const Json* init = fields.find("init_lora_weights");
  if (init != nullptr && init->is_string() &&
      !is_one_of(init->get<std::string>(), {"gaussian", "eva", "orthogonal"})) {
    refuse_adapter(path, "an adapter that changes the base weights is not supported",
                   "init_lora_weights: " + init->dump());
  }
  for (const auto& member : root.items()) {
    if (is_one_of(member.key(), inert_keys()) || is_one_of(member.key(), read_keys()) ||
        is_off(member.value()))
      continue;
    refuse_adapter(path, fmt::format("the adapter's setting `{}` is not supported", member.key()),
                   fmt::format("{}: {}", member.key(), show_json(member.value())));
  }
}

std::vector<int64_t> read_token_ids(const Json& list, const std::string& path) {
  std::vector<int64_t> ids;
  for (const Json& id : list) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > 0x7fffffffu) {
      refuse_adapter(path, "`trainable_token_indices` of an adapter has an invalid value",
                     show_json(id));
    }
    ids.push_back(id.get<int64_t>());
  }
  return ids;
}

// A list applies to the input embedding; an object maps modules to lists.
std::vector<PeftTokens> read_tokens(JsonFields& fields, const std::string& path) {
  const Json* value = fields.find("trainable_token_indices");
  if (value == nullptr || is_off(*value)) return {};
  if (value->is_array()) return {{"", read_token_ids(*value, path)}};
  std::vector<PeftTokens> tokens;
  if (!value->is_object())
    refuse_adapter(path, "`trainable_token_indices` of an adapter has an invalid value",
                   show_json(*value));
  for (const auto& member : value->items()) {
    if (!member.value().is_array())
      refuse_adapter(path, "`trainable_token_indices` of an adapter has an invalid value",
                     member.key());
    tokens.push_back({member.key(), read_token_ids(member.value(), path)});
  }
  return tokens;
}

Json tokens_json(const std::vector<PeftTokens>& tokens) {
  if (tokens.size() == 1 && tokens[0].module.empty()) return tokens[0].token_ids;
  Json by_module = Json::object();
  for (const PeftTokens& entry : tokens) by_module[entry.module] = entry.token_ids;
  return by_module;
}

PeftConfig read_config(const std::string& path) {
  const JsonOrigin origin{.path = path,
                          .error = "`{}` of an adapter has an invalid value",
                          .fix = "use the directory of a LoRA or DoRA adapter saved by PEFT",
                          .null_is_absent = true};
  const Json root = read_json_file(path);
  JsonFields fields(root, origin);
  refuse_other_adapters(fields, root, path);
  PeftConfig config;
  config.base_model = fields.text_or("base_model_name_or_path", "");
  config.rank = fields.integer_or<int64_t>("r", 8, 1, 65536);
  config.alpha = fields.number_or("lora_alpha", 8);
  config.dropout = fields.number_or("lora_dropout", 0);
  config.use_dora = fields.boolean_or("use_dora", false);
  const Json* modules = fields.find("target_modules");
  if (modules != nullptr && modules->is_string()) {
    config.targets.target_regex = modules->get<std::string>();
  } else {
    config.targets.target_modules = fields.texts("target_modules");
  }
  if (const Json* layers = fields.find("layers_to_transform"); layers != nullptr) {
    config.targets.layers_to_transform =
        layers->is_array()
            ? fields.integers("layers_to_transform")
            : std::vector<int>{static_cast<int>(fields.integer("layers_to_transform", 0, 1 << 20))};
  }
  const Json* pattern = fields.find("layers_pattern");
  config.targets.layers_pattern = pattern != nullptr && pattern->is_string()
                                      ? Strings{pattern->get<std::string>()}
                                      : fields.texts("layers_pattern");
  config.targets.modules_to_save = fields.texts("modules_to_save");
  config.targets.ensure_weight_tying = fields.boolean_or("ensure_weight_tying", false);
  config.targets.trainable_tokens = read_tokens(fields, path);
  return config;
}

/// An adapter's rematch_base.json; a record without a hash if there is none.
BaseRecord read_base(const std::string& directory) {
  const std::string path = join_path(directory, kAdapterBaseFile);
  if (!path_exists(path)) return {};
  const JsonOrigin origin{
      .path = path,
      .error = "`{}` in the adapter's rematch_base.json is invalid",
      .fix = "copy the file of the original checkpoint; without it the base is not checked"};
  const Json root = read_json_file(path);
  JsonFields fields(root, origin);
  BaseRecord base{.weights_hash = fields.text("weights_hash"),
                  .config_hash = fields.text_or("config_hash", "")};
  if (base.weights_hash.empty()) fields.fail("weights_hash", "it is empty");
  if (!fields.has(kPacked)) return base;
  JsonFields packed = fields.object(kPacked);
  const std::optional<FourBitKind> kind = value_of<FourBitKind>(packed.text("quant_type"));
  if (!kind) packed.fail("quant_type", "expected nf4 or fp4");
  base.packed = {.quant_type = *kind,
                 .use_double_quant = packed.boolean("use_double_quant"),
                 .skip_modules = packed.texts("skip_modules")};
  return base;
}

Json base_json(const PeftConfig& config) {
  Json root = {{"base_model", config.base_model}, {"weights_hash", config.base.weights_hash}};
  if (!config.base.config_hash.empty()) root["config_hash"] = config.base.config_hash;
  if (const auto& packed = config.base.packed) {
    root[kPacked] = {{"quant_type", name_of(packed->quant_type)},
                     {"use_double_quant", packed->use_double_quant},
                     {"skip_modules", packed->skip_modules}};
  }
  return root;
}

// Whole numbers without a decimal point, as in files of PEFT's users.
Json plain_number(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15 ? Json(static_cast<int64_t>(value))
                                                              : Json(value);
}

Json config_json(const PeftConfig& config) {
  const PeftTargets& targets = config.targets;
  const auto or_null = [](const auto& list) { return list.empty() ? Json(nullptr) : Json(list); };
  std::map<std::string, Json> members{
      {"alpha_pattern", Json::object()},
      {"auto_mapping", nullptr},
      {"base_model_name_or_path", config.base_model},
      {"bias", "none"},
      {"exclude_modules", nullptr},
      {"fan_in_fan_out", false},
      {"inference_mode", true},
      {"init_lora_weights", true},
      {"layer_replication", nullptr},
      {"layers_pattern", or_null(targets.layers_pattern)},
      {"layers_to_transform", or_null(targets.layers_to_transform)},
      {"lora_alpha", plain_number(config.alpha)},
      {"lora_bias", false},
      {"lora_dropout", config.dropout},
      {"modules_to_save", or_null(targets.modules_to_save)},
      {"peft_type", "LORA"},
      {"r", config.rank},
      {"rank_pattern", Json::object()},
      {"revision", nullptr},
      {"target_modules",
       targets.target_regex ? Json(*targets.target_regex) : Json(targets.target_modules)},
      {"target_parameters", nullptr},
      {"task_type", "CAUSAL_LM"},
      {"use_dora", config.use_dora},
      {"use_rslora", false}};
  // Keys of newer releases, only if needed.
  if (targets.ensure_weight_tying) members["ensure_weight_tying"] = true;
  if (!targets.trainable_tokens.empty())
    members["trainable_token_indices"] = tokens_json(targets.trainable_tokens);
  return Json(members);  // sorted by key, as PEFT writes them
}

}  // namespace

bool is_adapter_dir(const std::string& directory) {
  return path_exists(join_path(directory, kConfigFile)) &&
         !path_exists(join_path(directory, "config.json"));
}

PeftAdapter read_peft_adapter(const std::string& directory) {
  const auto has = [&](const char* name) { return path_exists(join_path(directory, name)); };
  if (!has(kConfigFile) && has("config.json")) {
    throw config_error({.error = "this is a full model, not an adapter",
                        .where = directory,
                        .what = "it contains a config.json and no " + std::string(kConfigFile),
                        .fix = "use it as it is: nothing is left to merge"});
  }
  const std::string fix =
      fmt::format("use the directory that contains {} and {}", kConfigFile, kWeightsFile);
  if (!path_exists(directory))
    throw missing_path("adapter", directory.empty() ? "adapter" : directory, fix);
  if (!has(kConfigFile)) {
    throw config_error({.error = "this is not an adapter directory",
                        .where = directory,
                        .what = fmt::format("it contains no {}", kConfigFile),
                        .fix = fix});
  }
  PeftAdapter adapter;
  adapter.config = read_config(join_path(directory, kConfigFile));
  adapter.config.base = read_base(directory);
  const std::string weights = join_path(directory, kWeightsFile);
  if (!has(kWeightsFile)) {
    throw data_error(
        {.error = "an adapter has no weights",
         .where = directory,
         .what = has("adapter_model.bin") ? "adapter_model.bin is a pickle, which is not supported"
                                          : fmt::format("no {}", kWeightsFile),
         .fix = "save the adapter with PEFT's save_pretrained(safe_serialization=True)"});
  }
  const auto file = SafetensorsFile::open(weights);
  for (const std::string& name : file->names()) {
    if (!name.starts_with(kPrefix)) {
      throw data_error({.error = fmt::format("the adapter's tensor {} is unknown", name),
                        .where = weights,
                        .what = fmt::format("PEFT's tensor names start with {}", kPrefix),
                        .fix = "save the adapter with PEFT's save_pretrained"});
    }
    adapter.tensors.push_back({name.substr(kPrefix.size()), file->tensor(name)});
  }
  return adapter;
}

std::string named_base_model(const PeftAdapter& adapter, const std::string& directory) {
  if (!adapter.config.base_model.empty()) return adapter.config.base_model;
  throw config_error(
      {.error = "the adapter does not name its base model",
       .where = join_path(directory, kConfigFile),
       .what = "base_model_name_or_path is absent, null or empty",
       .fix = fmt::format(
           "write the base model's directory there; `rematch predict BASE IMAGES "
           "--adapter {0}` and `rematch merge {0} --model BASE --out DIR` do without it",
           shell_word(directory))});
}

void write_peft_adapter(const std::string& directory, const PeftAdapter& adapter) {
  std::vector<TensorEntry> tensors;
  for (const TensorEntry& entry : adapter.tensors)
    tensors.push_back({kPrefix + entry.name, entry.tensor.detach()});
  write_safetensors(join_path(directory, kWeightsFile), std::move(tensors));
  // ASCII without a final newline, like Python's json.dumps.
  write_file(join_path(directory, kConfigFile),
             config_json(adapter.config).dump(2, ' ', true, Json::error_handler_t::replace));
  if (adapter.config.base.weights_hash.empty()) return;
  write_file(join_path(directory, kAdapterBaseFile),
             python_json(base_json(adapter.config), 2) + "\n");
}

}  // namespace rematch
