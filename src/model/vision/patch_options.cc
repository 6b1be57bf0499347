#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "model/vision/patches.h"

namespace rematch {
namespace {

// Defaults of transformers' image processor for these models, used for fields that the file omits.
constexpr int kDefaultPatchSize = 14;
constexpr std::array<double, 3> kClipMean{0.48145466, 0.4578275, 0.40821073};
constexpr std::array<double, 3> kClipStd{0.26862954, 0.26130258, 0.27577711};
constexpr int64_t kDefaultMinPixels = 56 * 56;
constexpr int64_t kDefaultMaxPixels = 28 * 28 * 1280;

// At least ten times what published processors have. An image is enlarged to at least one token, so
// a large patch or merge size would allocate its square.
constexpr int kMaxPatch = 256, kMaxFrames = 4, kMaxMerge = 8;
constexpr double kMaxLevel = 1000, kLeastScale = 1e-6;
constexpr int64_t kMaxPixels = int64_t{1} << 40;
constexpr int64_t kLargestMinPixels = 16777216;  // every image is enlarged to it

struct SettingsFile {
  Json settings;
  std::string path;
};

SettingsFile find_settings(const std::string& model_dir) {
  const std::string processor_path = model_dir + "/processor_config.json",
                    preprocessor_path = model_dir + "/preprocessor_config.json";
  if (path_exists(processor_path)) {
    const Json file = read_json_file(processor_path);
    if (const auto found = file.find("image_processor");
        file.is_object() && found != file.end() && found->is_object()) {
      return {.settings = *found, .path = processor_path + ": image_processor"};
    }
  }
  if (!path_exists(preprocessor_path)) {
    throw data_error({.error = "the model directory has no image-processor settings",
                      .where = model_dir,
                      .what = "found neither preprocessor_config.json nor a processor_config.json "
                              "with an image_processor",
                      .fix = "copy preprocessor_config.json from the original checkpoint into it"});
  }
  return {.settings = read_json_file(preprocessor_path), .path = preprocessor_path};
}

// Three channels, or one number for all of them.
std::array<double, 3> read_channels(JsonFields& fields, const char* key,
                                    const std::array<double, 3>& fallback, bool must_be_positive) {
  const Json* value = fields.find(key);
  if (value == nullptr) return fallback;
  const auto number = [&](const Json& item) {
    const double result = item.is_number() ? item.get<double>() : NAN;
    const double least = must_be_positive ? kLeastScale : -kMaxLevel;
    if (!(result >= least && result <= kMaxLevel)) {
      fields.fail(key, fmt::format("expected three numbers from {} to {}, found {}", least,
                                   kMaxLevel, show_json(*value)));
    }
    return result;
  };
  if (!value->is_array() || value->size() != 3)
    return {number(*value), number(*value), number(*value)};
  return {number((*value)[0]), number((*value)[1]), number((*value)[2])};
}

// The model was trained on rescaled and normalised pixels, so these steps cannot be turned off.
void require_true(JsonFields& fields, const char* key) {
  if (!fields.boolean_or(key, true)) fields.fail(key, "only true is implemented, found false");
}

// Area limits: top-level min_pixels/max_pixels override size.shortest_edge/longest_edge (older
// files repeat them inside size).
void read_area_limits(JsonFields& fields, PatchOptions& options) {
  const bool has_size = fields.has("size");
  JsonFields size = fields.object_or_empty("size");
  const auto limit = [&](const char* top_key, const char* size_key, int64_t fallback,
                         int64_t most) {
    if (fields.has(top_key)) return fields.integer(top_key, 1, most);
    if (!has_size) return fallback;
    return size.integer(size.has(size_key) || !size.has(top_key) ? size_key : top_key, 1, most);
  };
  options.min_pixels = limit("min_pixels", "shortest_edge", kDefaultMinPixels, kLargestMinPixels);
  options.max_pixels = limit("max_pixels", "longest_edge", kDefaultMaxPixels, kMaxPixels);
}

void read_resizing(JsonFields& fields, PatchOptions& options) {
  constexpr int64_t kBicubic = 3;  // Pillow's number
  options.do_resize = fields.boolean_or("do_resize", true);
  if (options.do_resize && fields.integer_or("resample", kBicubic) != kBicubic) {
    fields.fail("resample", fmt::format("only {} (bicubic) is implemented, found {}", kBicubic,
                                        fields.integer("resample")));
  }
}

// Settings of the configuration override those of the model directory.
void apply_config(const ImageSettings& images, PatchOptions& options) {
  options.on_resize = images.image_resize;
  options.backend = images.image_backend;
  options.min_pixels = images.min_pixels.value_or(options.min_pixels);
  options.max_pixels = images.max_pixels.value_or(options.max_pixels);
  if ((images.min_pixels || images.max_pixels) && options.min_pixels > options.max_pixels) {
    throw config_error(
        {.error = "the smallest area of an image is larger than the largest",
         .where = "template.min_pixels, template.max_pixels",
         .what =
             fmt::format("{} and {} pixels; a missing one comes from the model's image processor",
                         options.min_pixels, options.max_pixels),
         .fix = "set both, the first at most the second"});
  }
}

}  // namespace

PatchOptions PatchOptions::from_model_dir(const std::string& model_dir,
                                          const ImageSettings& images) {
  const SettingsFile file = find_settings(model_dir);
  const JsonOrigin origin{.path = file.path,
                          .error = "the image-processor setting {} has an invalid value",
                          .fix = "correct it, or copy the file of the original checkpoint",
                          .null_is_absent = true};
  JsonFields fields(file.settings, origin);
  require_true(fields, "do_rescale");
  require_true(fields, "do_normalize");
  PatchOptions options;
  options.patch_size = fields.integer_or("patch_size", kDefaultPatchSize, 1, kMaxPatch);
  options.temporal_patch_size = fields.integer_or("temporal_patch_size", 2, 1, kMaxFrames);
  options.merge_size = fields.integer_or("merge_size", 2, 1, kMaxMerge);
  options.image_mean = read_channels(fields, "image_mean", kClipMean, false);
  options.image_std = read_channels(fields, "image_std", kClipStd, true);
  options.rescale_factor = fields.number_or("rescale_factor", options.rescale_factor);
  if (options.rescale_factor < kLeastScale || options.rescale_factor > kMaxLevel) {
    fields.fail("rescale_factor", fmt::format("expected a number from {} to {} (1/255), found {}",
                                              kLeastScale, kMaxLevel, options.rescale_factor));
  }
  read_area_limits(fields, options);
  read_resizing(fields, options);
  apply_config(images, options);
  return options;
}

}  // namespace rematch
