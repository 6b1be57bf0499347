#include "checkpoint/peft.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfigFile = "adapter_config.json";
constexpr const char* kWeightsFile = "adapter_model.safetensors";
const std::string kPrefix = "base_model.model.";

/// Keys that do not affect what a saved adapter computes.
const std::vector<std::string>& inert_keys() {
  static const std::vector<std::string> kKeys = {
      "auto_mapping", "base_model_name_or_path", "ensure_weight_tying", "inference_mode", "revision", "task_type", "peft_version",
      "megatron_config", "megatron_core", "loftq_config", "corda_config", "eva_config", "lora_ga_config", "exclude_modules",
      "layers_pattern", "runtime_config", "layers_to_transform", "qalora_group_size",
      // of ms-swift
      "lora_dtype", "lorap_lr_ratio", "lorap_emb_lr", "model_key_mapping", "group_size", "use_merged_linear", "enable_lora"};
  return kKeys;
}

/// Keys that are read, or checked one by one.
const std::vector<std::string>& read_keys() {
  static const std::vector<std::string> kKeys = {"peft_type",     "r",    "lora_alpha",     "lora_dropout",    "use_dora",
                                                 "use_rslora",    "bias", "target_modules", "modules_to_save", "init_lora_weights",
                                                 "fan_in_fan_out"};
  return kKeys;
}

bool is_one_of(const std::string& name, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// null, false, 0, "", [] and {} switch a variant off.
bool is_off(const Json& value) {
  return value.is_null() || (value.is_boolean() && !value.get<bool>()) || (value.is_number() && value == 0) ||
         ((value.is_string() || value.is_array() || value.is_object()) && (value.empty() || value == ""));
}

/// Reads one adapter_config.json.
class ConfigReader {
 public:
  explicit ConfigReader(const std::string& path) : path_(path), root_(read_json_file(path)) {
    if (!root_.is_object()) fail("an adapter configuration is not a JSON object", root_.type_name());
  }

  PeftConfig read() {
    refuse_other_adapters();
    PeftConfig config;
    config.base_model = text("base_model_name_or_path");
    config.rank = static_cast<int64_t>(number("r", 8));
    config.alpha = number("lora_alpha", 8);
    config.dropout = number("lora_dropout", 0);
    config.use_dora = flag("use_dora");
    config.use_rslora = flag("use_rslora");
    if (config.rank < 1) fail("the rank of an adapter must be at least 1", fmt::format("r is {}", config.rank));
    read_targets(config.targets);
    return config;
  }

 private:
  [[noreturn]] void fail(std::string error, std::string what,
                         std::string fix = "use the directory of a LoRA or DoRA adapter saved by PEFT") const {
    throw UserError(ErrorKind::kData, {.error = std::move(error), .where = path_, .what = std::move(what), .fix = std::move(fix)});
  }

  const Json* find(const char* key) const {
    const auto found = root_.find(key);
    return found == root_.end() || found->is_null() ? nullptr : &*found;
  }

  std::string text(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return "";
    if (!value->is_string()) fail(fmt::format("`{}` of an adapter is not a string", key), value->dump());
    return value->get<std::string>();
  }

  double number(const char* key, double fallback) const {
    const Json* value = find(key);
    if (value == nullptr) return fallback;
    if (!value->is_number() || std::abs(value->get<double>()) > 1e9) {
      fail(fmt::format("`{}` of an adapter is not a valid number", key), value->dump());
    }
    return value->get<double>();
  }

  bool flag(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return false;
    if (!value->is_boolean()) fail(fmt::format("`{}` of an adapter is neither true nor false", key), value->dump());
    return value->get<bool>();
  }

  std::vector<std::string> texts(const char* key) const {
    std::vector<std::string> list;
    const Json* value = find(key);
    if (value == nullptr) return list;
    if (!value->is_array()) fail(fmt::format("`{}` of an adapter is not a list", key), value->dump().substr(0, 200));
    for (const Json& item : *value) {
      if (!item.is_string()) fail(fmt::format("`{}` of an adapter has an entry that is not a string", key), item.dump().substr(0, 200));
      list.push_back(item.get<std::string>());
    }
    return list;
  }

  void refuse_other_adapters() const {
    const std::string remedy = "merge that adapter with PEFT (`merge_and_unload`, `save_pretrained`) and use the merged model";
    if (const std::string type = text("peft_type"); type != "LORA") {
      fail("the adapter is neither LoRA nor DoRA", fmt::format("peft_type is \"{}\"", type), remedy);
    }
    if (const std::string bias = text("bias"); bias != "none" && !bias.empty()) {
      fail("an adapter with biases is not supported", "bias: " + bias, remedy);
    }
    // These split the base weight at initialisation, so the adapter does not match the unmodified base model.
    const Json* init = find("init_lora_weights");
    if (init != nullptr && init->is_string() && !is_one_of(init->get<std::string>(), {"gaussian", "eva", "orthogonal"})) {
      fail("an adapter that changes the base weights is not supported", "init_lora_weights: " + init->dump(), remedy);
    }
    for (const auto& member : root_.items()) {
      if (is_one_of(member.key(), inert_keys()) || is_one_of(member.key(), read_keys()) || is_off(member.value())) continue;
      fail(fmt::format("the adapter's setting `{}` is not supported", member.key()),
           fmt::format("{}: {}", member.key(), member.value().dump().substr(0, 200)), remedy);
    }
  }

  void read_targets(PeftTargets& targets) const {
    const Json* modules = find("target_modules");
    if (modules != nullptr && modules->is_string()) {
      targets.target_regex = modules->get<std::string>();
    } else {
      targets.target_modules = texts("target_modules");
    }
    targets.modules_to_save = texts("modules_to_save");
  }

  std::string path_;
  Json root_;
};

// Integers without a decimal point, as PEFT's users write them.
Json plain_number(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15 ? Json(static_cast<int64_t>(value)) : Json(value);
}

Json config_json(const PeftConfig& config) {
  const PeftTargets& targets = config.targets;
  // Sorted by key, as PEFT writes them.
  return Json{{"alpha_pattern", Json::object()},
              {"auto_mapping", nullptr},
              {"base_model_name_or_path", config.base_model},
              {"bias", "none"},
              {"exclude_modules", nullptr},
              {"fan_in_fan_out", false},
              {"inference_mode", true},
              {"init_lora_weights", true},
              {"layer_replication", nullptr},
              {"layers_pattern", nullptr},
              {"layers_to_transform", nullptr},
              {"lora_alpha", plain_number(config.alpha)},
              {"lora_bias", false},
              {"lora_dropout", config.dropout},
              {"modules_to_save", targets.modules_to_save.empty() ? Json(nullptr) : Json(targets.modules_to_save)},
              {"peft_type", "LORA"},
              {"r", config.rank},
              {"rank_pattern", Json::object()},
              {"revision", nullptr},
              {"target_modules", targets.target_regex ? Json(*targets.target_regex) : Json(targets.target_modules)},
              {"target_parameters", nullptr},
              {"task_type", "CAUSAL_LM"},
              {"use_dora", config.use_dora},
              {"use_rslora", config.use_rslora}};
}

}  // namespace

bool is_adapter_dir(const std::string& directory) {
  std::error_code error;
  return fs::exists(join_path(directory, kConfigFile), error) && !fs::exists(join_path(directory, "config.json"), error);
}

PeftAdapter read_peft_adapter(const std::string& directory) {
  std::error_code error;
  const auto has = [&](const char* name) { return fs::exists(join_path(directory, name), error); };
  if (!fs::is_directory(directory, error) || !has(kConfigFile)) {
    throw UserError(ErrorKind::kConfig,
                    {.error = "this is not an adapter directory",
                     .where = directory.empty() ? "adapter" : directory,
                     .what = fs::is_directory(directory, error) ? fmt::format("it contains no {}", kConfigFile) : "no such directory",
                     .fix = fmt::format("use the directory that contains {} and {}", kConfigFile, kWeightsFile)});
  }
  PeftAdapter adapter;
  adapter.config = ConfigReader(join_path(directory, kConfigFile)).read();
  const std::string weights = join_path(directory, kWeightsFile);
  if (!has(kWeightsFile)) {
    throw UserError(ErrorKind::kData, {.error = "an adapter has no weights",
                                       .where = directory,
                                       .what = has("adapter_model.bin") ? "adapter_model.bin is a pickle, which is not supported"
                                                                        : fmt::format("no {}", kWeightsFile),
                                       .fix = "save the adapter with PEFT's save_pretrained(safe_serialization=True)"});
  }
  const auto file = SafetensorsFile::open(weights);
  for (const std::string& name : file->names()) {
    if (name.compare(0, kPrefix.size(), kPrefix) != 0) {
      throw UserError(ErrorKind::kData, {.error = fmt::format("the adapter's tensor {} is unknown", name),
                                         .where = weights,
                                         .what = fmt::format("PEFT's tensor names start with {}", kPrefix),
                                         .fix = "save the adapter with PEFT's save_pretrained"});
    }
    adapter.tensors.push_back({name.substr(kPrefix.size()), file->tensor(name)});
  }
  return adapter;
}

void write_peft_adapter(const std::string& directory, const PeftAdapter& adapter) {
  std::vector<TensorEntry> tensors;
  for (const TensorEntry& entry : adapter.tensors) tensors.push_back({kPrefix + entry.name, entry.tensor.detach()});
  write_safetensors(join_path(directory, kWeightsFile), std::move(tensors));
  FileWriter config(join_path(directory, kConfigFile));
  // ASCII, no newline at the end: as Python's json.dumps.
  config.write(config_json(adapter.config).dump(2, ' ', true, Json::error_handler_t::replace));
  config.finish();
}

}  // namespace rematch
