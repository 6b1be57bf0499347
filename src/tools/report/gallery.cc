#include "tools/report/gallery.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/flow/object_json.h"
#include "model/vision/image.h"
#include "tools/draw/encode.h"
#include "tools/draw/panel.h"
#include "tools/report/evaluated_sample.h"

namespace rematch {
namespace {

constexpr int kJpegQuality = 78;

/// @param scores  of the objects; empty = none
Json objects_json(const Objects& objects, const std::vector<double>& scores) {
  Json list = Json::array();
  for (size_t i = 0; i < objects.size(); ++i) {
    list.push_back(object_json(objects[i].desc, objects[i].geometry));
    if (!scores.empty()) list.back()["score"] = std::round(scores[i] * 1e4) / 1e4;
  }
  return list;
}

/// A sample of the gallery; null when its image cannot be read or exceeds the bytes that are left.
Json collect_sample(const EvaluatedSample& sample, const EvaluatedSample* before, int long_side_px,
                    size_t& bytes_left) {
  Image image;
  try {
    image = load_image(sample.image_path);
  } catch (const UserError&) {
    return nullptr;
  }
  image = scale_to(image, std::min(long_side_px, std::max(image.width_px, image.height_px)));
  std::string jpeg = base64(encode_jpeg(image, kJpegQuality));
  if (jpeg.size() > bytes_left) return nullptr;
  bytes_left -= jpeg.size();
  Json json{{"line", sample.sample_id + 1},
            {"width", image.width_px},
            {"height", image.height_px},
            {"image", std::move(jpeg)},
            {"status", sample.status},
            {"f1", sample.f1_labels()},
            {"calibrated", sample.is_calibrated},
            {"truth", objects_json(sample.truth, {})},
            {"after", objects_json(sample.predictions, sample.scores)}};
  if (before != nullptr) {
    json["f1_before"] = before->f1_labels();
    json["before"] = objects_json(before->predictions, before->scores);
  }
  return json;
}

}  // namespace

Json collect_gallery(const EvaluationFile& now, const EvaluationFile* before,
                     const GalleryOptions& options) {
  const std::vector<EvaluatedSample> samples = read_evaluated_samples(now.samples_path);
  std::vector<EvaluatedSample> earlier;
  if (before != nullptr && !before->samples_path.empty())
    earlier = read_evaluated_samples(before->samples_path);

  std::vector<size_t> by_score(samples.size());
  std::iota(by_score.begin(), by_score.end(), size_t{0});
  std::ranges::stable_sort(by_score, {}, [&](size_t i) { return samples[i].f1_labels(); });
  by_score.resize(std::min(by_score.size(), static_cast<size_t>(options.num_worst)));

  Json groups = Json::array();
  size_t bytes_left = options.max_bytes;
  std::set<size_t> shown;
  const auto add_group = [&](const char* title, const std::vector<size_t>& chosen) {
    Json list = Json::array();
    for (const size_t i : chosen) {
      if (!shown.insert(i).second) continue;
      Json sample = collect_sample(samples[i], find_same_image(earlier, samples[i]),
                                   options.long_side_px, bytes_left);
      if (!sample.is_null()) list.push_back(std::move(sample));
    }
    if (!list.empty()) groups.push_back({{"title", title}, {"samples", std::move(list)}});
  };
  add_group("Worst", by_score);
  add_group("Typical (evenly spaced over the records)",
            evenly_spaced_indices(samples.size(), options.num_even));
  return {{"has_before", !earlier.empty()}, {"groups", std::move(groups)}};
}

}  // namespace rematch
