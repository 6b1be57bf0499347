#include <fmt/core.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "vision/patches.h"

namespace rematch {
namespace {

// Defaults of transformers' image processor for these models, used for fields the file leaves out.
constexpr int kDefaultPatchSize = 14;
constexpr std::array<double, 3> kClipMean{0.48145466, 0.4578275, 0.40821073};
constexpr std::array<double, 3> kClipStd{0.26862954, 0.26130258, 0.27577711};
constexpr int64_t kDefaultMinPixels = 56 * 56;
constexpr int64_t kDefaultMaxPixels = 28 * 28 * 1280;

// The settings of one file; every reader treats null as missing, as transformers does.
struct Settings {
  Json values;
  std::string path;

  const Json* find(const Json& parent, const char* key) const {
    const auto found = parent.find(key);
    return found == parent.end() || found->is_null() ? nullptr : &*found;
  }
  const Json* find(const char* key) const { return find(values, key); }

  [[noreturn]] void fail(const std::string& key, const std::string& found, const std::string& wanted) const {
    throw UserError(ErrorKind::kData, {.error = fmt::format("the image-processor setting {} has an invalid value", key),
                                       .where = path,
                                       .what = found,
                                       .fix = fmt::format("set {} to {}, or copy the file from the original checkpoint", key, wanted)});
  }

  std::optional<int64_t> positive_integer(const Json* value, const char* key, int64_t largest) const {
    if (value == nullptr) return std::nullopt;
    const double number = value->is_number() ? value->get<double>() : 0.0;
    if (number < 1 || number > static_cast<double>(largest) || number != std::floor(number)) {
      fail(key, value->dump(), fmt::format("an integer from 1 to {}", largest));
    }
    return static_cast<int64_t>(number);
  }

  std::optional<std::array<double, 3>> channels(const char* key, bool must_be_positive) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    const auto number = [&](const Json& item) {
      const double result = item.is_number() ? item.get<double>() : NAN;
      if (!std::isfinite(result) || (must_be_positive && !(result > 0))) fail(key, value->dump(), "a list of three finite numbers");
      return result;
    };
    if (value->is_number()) return std::array<double, 3>{number(*value), number(*value), number(*value)};
    if (!value->is_array() || value->size() != 3) fail(key, value->dump(), "a list of three finite numbers");
    return std::array<double, 3>{number((*value)[0]), number((*value)[1]), number((*value)[2])};
  }

  // Rescaling and normalising are part of what the model was trained on; they cannot be switched off.
  void refuse_switched_off(const char* key) const {
    const Json* value = find(key);
    if (value != nullptr && *value != Json(true)) fail(key, value->dump(), "true");
  }
};

Settings find_settings(const std::string& model_dir) {
  const std::string processor_path = model_dir + "/processor_config.json", preprocessor_path = model_dir + "/preprocessor_config.json";
  if (std::filesystem::exists(processor_path)) {
    const Json file = read_json_file(processor_path);
    if (const auto found = file.find("image_processor"); file.is_object() && found != file.end() && found->is_object()) {
      return {.values = *found, .path = processor_path + ": image_processor"};
    }
  }
  if (!std::filesystem::exists(preprocessor_path)) {
    throw UserError(ErrorKind::kData, {.error = "the model directory has no image-processor settings",
                                       .where = model_dir,
                                       .what = "found neither preprocessor_config.json nor a processor_config.json with an image_processor",
                                       .fix = "copy preprocessor_config.json from the original checkpoint into it"});
  }
  Settings settings{.values = read_json_file(preprocessor_path), .path = preprocessor_path};
  if (!settings.values.is_object()) settings.fail("(the whole file)", settings.values.type_name(), "a JSON object");
  return settings;
}

// Area limits: top-level min_pixels/max_pixels override size.shortest_edge/longest_edge (older files repeat them inside size).
void read_area_limits(const Settings& settings, PatchOptions& options) {
  const Json* size = settings.find("size");
  if (size != nullptr && !size->is_object()) settings.fail("size", size->dump(), "an object with shortest_edge and longest_edge (areas)");
  const auto limit = [&](const char* top_key, const char* size_key, int64_t fallback) {
    const Json* value = settings.find(top_key);
    if (value == nullptr && size != nullptr) value = settings.find(*size, size_key);
    if (value == nullptr && size != nullptr) value = settings.find(*size, top_key);
    if (value == nullptr && size != nullptr) settings.fail("size", size->dump(), "an object with shortest_edge and longest_edge (areas)");
    return settings.positive_integer(value, top_key, int64_t{1} << 40).value_or(fallback);
  };
  options.min_pixels = limit("min_pixels", "shortest_edge", kDefaultMinPixels);
  options.max_pixels = limit("max_pixels", "longest_edge", kDefaultMaxPixels);
}

}  // namespace

PatchOptions PatchOptions::from_model_dir(const std::string& model_dir) {
  const Settings settings = find_settings(model_dir);
  settings.refuse_switched_off("do_rescale");
  settings.refuse_switched_off("do_normalize");
  PatchOptions options;
  const auto integer = [&](const char* key, int fallback) {
    return static_cast<int>(settings.positive_integer(settings.find(key), key, 1024).value_or(fallback));
  };
  options.patch_size = integer("patch_size", kDefaultPatchSize);
  options.temporal_patch_size = integer("temporal_patch_size", 2);
  options.merge_size = integer("merge_size", 2);
  options.image_mean = settings.channels("image_mean", false).value_or(kClipMean);
  options.image_std = settings.channels("image_std", true).value_or(kClipStd);
  if (const Json* factor = settings.find("rescale_factor"); factor != nullptr) {
    options.rescale_factor = factor->is_number() ? factor->get<double>() : 0.0;
    const bool is_good = options.rescale_factor > 0 && std::isfinite(options.rescale_factor);
    if (!is_good) settings.fail("rescale_factor", factor->dump(), "a positive number (1/255)");
  }
  read_area_limits(settings, options);
  return options;
}

}  // namespace rematch
