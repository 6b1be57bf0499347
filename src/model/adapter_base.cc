#include "model/adapter_base.h"

#include <ATen/Parallel.h>
#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>
#include <vector>

#include "base/content_key.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/terminal_text.h"
#include "model/families/family.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

std::string resolve_path(const std::string& model_dir) {
  std::error_code error;
  const fs::path resolved = fs::canonical(model_dir, error);
  if (error) return model_dir;
  if (fs::path(model_dir).is_absolute()) return resolved.string();
  const fs::path here = fs::current_path(error);
  const fs::path relative = resolved.lexically_relative(here);
  const bool is_below = !error && !relative.empty() && *relative.begin() != "..";
  return is_below ? relative.string() : resolved.string();
}

std::shared_ptr<const HfDir> open_weights(const std::string& model_dir) {
  return HfDir::open(model_dir, describe_model(model_dir).file_names);
}

/// Hash of config.json without the members that depend on the program that wrote it. Sizes of which
/// no weight tells change the answers too: rope_theta, rms_norm_eps, heads.
std::string hash_config(const std::string& model_dir) {
  Json config = read_json_file(join_path(model_dir, "config.json"));
  const auto strip = [](Json& part) {
    for (const char* name : {"_name_or_path", "architectures", "dtype", "torch_dtype",
                             "transformers_version", "use_cache"})
      part.erase(name);
  };
  strip(config);
  for (auto& [name, part] : config.items()) {
    if (part.is_object()) strip(part);
  }
  return content_hash_of(nlohmann::json(config).dump());  // sorted
}

}  // namespace

std::string stored_weights_hash(const HfDir& weights) {
  const Strings& names = weights.names();
  Strings hashes(names.size());
  at::parallel_for(0, std::ssize(names), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<size_t>(i);
      hashes[at] = content_hash_of(weights.bytes(names[at]));
      weights.drop(names[at]);
    }
  });
  std::string all;
  for (size_t i = 0; i < names.size(); ++i) {
    all += fmt::format("{} {}", names[i], at::toString(weights.dtype(names[i])));
    for (const int64_t size : weights.shape(names[i])) all += fmt::format(" {}", size);
    all += fmt::format(": {}\n", hashes[i]);
  }
  return content_hash_of(all);
}

AdapterBase describe_base(const std::string& model_dir) {
  return {.path = resolve_path(model_dir),
          .weights_hash = stored_weights_hash(*open_weights(model_dir)),
          .config_hash = hash_config(model_dir)};
}

std::string check_adapter_base(const AdapterUse& use) {
  const BaseRecord& base = use.adapter.config.base;
  if (base.weights_hash.empty()) {
    return fmt::format(
        "{} has no {}: nothing shows whether {} still has the weights of its training",
        use.adapter_dir, kAdapterBaseFile, use.base_dir);
  }
  const std::string weights = stored_weights_hash(*open_weights(use.base_dir));
  const bool has_weights = weights == base.weights_hash;
  const std::string config = has_weights ? hash_config(use.base_dir) : "";
  if (has_weights && (base.config_hash.empty() || base.config_hash == config)) return "";
  const auto [others, part, found, known] =
      has_weights ? std::tuple("another config.json", "config.json", config, base.config_hash)
                  : std::tuple("other weights", "weights", weights, base.weights_hash);
  if (use.force_base) {
    return fmt::format(
        "--force-base: {} has {} than {} was trained on: a combination that was never trained",
        use.base_dir, others, use.adapter_dir);
  }
  throw data_error(
      {.error = fmt::format("the adapter was trained on a base model with {}", others),
       .where = use.base_dir,
       .what = fmt::format("the hash of its {} is {}; {} was trained on {} ({})", part, found,
                           use.adapter_dir, known, use.adapter.config.base_model),
       .fix = fmt::format("use the model that the adapter was trained on: `rematch predict BASE "
                          "IMAGES --adapter {0}`, `rematch merge {0} --model BASE --out DIR`; "
                          "--force-base takes this base all the same",
                          shell_word(use.adapter_dir))});
}

}  // namespace rematch
