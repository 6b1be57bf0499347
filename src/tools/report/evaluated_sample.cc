#include "tools/report/evaluated_sample.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/flow/object_json.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "learn/evaluate/coco_scene.h"

namespace rematch {
namespace {

Objects read_objects(JsonFields& sample, const std::string& key, const JsonOrigin& origin) {
  Objects objects;
  const std::string place = sample.place_of(key);
  for (const Json& entry : sample.list(key))
    objects.push_back({JsonFields(entry, origin, place).text("desc"),
                       read_geometry(entry, origin.path + ", " + place, {.allow_inverted = true})});
  return objects;
}

EvaluatedSample read_sample(const Json& json, const JsonOrigin& origin) {
  JsonFields fields(json, origin);
  EvaluatedSample sample{.sample_id = fields.integer("sample_id"),
                         .truth = read_objects(fields, "ground_truth", origin),
                         .predictions = read_objects(fields, "predictions", origin),
                         .status = fields.text("status")};
  sample.scores = read_scores(fields, sample.predictions.size());
  sample.is_calibrated = fields.has("raw_scores");
  const Strings images = fields.texts("images");
  if (images.empty()) fields.fail("images", "expected at least one");
  sample.image_path = images.front();
  for (const Json& pair : fields.list("pairs")) {
    const auto index = [&](size_t side, size_t count) {
      return static_cast<int>(
          json_integer(pair.is_array() && pair.size() == 2 ? pair[side] : Json(), origin, "pairs",
                       0, static_cast<int64_t>(count) - 1));
    };
    sample.pairs.emplace_back(index(0, sample.predictions.size()), index(1, sample.truth.size()));
  }
  for (const Json& right : fields.list("named_right")) sample.named_right.push_back(right == true);
  if (sample.named_right.size() != sample.pairs.size())
    fields.fail("named_right", "expected one value for each pair");
  return sample;
}

}  // namespace

double EvaluatedSample::f1_labels() const {
  const size_t num_objects = truth.size() + predictions.size();
  const auto num_right = std::ranges::count(named_right, true);
  return num_objects == 0 ? 1.0
                          : 2 * static_cast<double>(num_right) / static_cast<double>(num_objects);
}

std::vector<EvaluatedSample> read_evaluated_samples(const std::string& path) {
  std::vector<EvaluatedSample> samples;
  int number = 0;
  for (const std::string& line : split(read_file(path), '\n')) {
    ++number;
    if (line.empty()) continue;
    const JsonOrigin origin{.path = fmt::format("{}:{}", path, number),
                            .error = "the samples of an evaluation cannot be read",
                            .fix = "evaluate the checkpoint again, or remove the file"};
    samples.push_back(read_sample(parse_document(line, origin), origin));
  }
  return samples;
}

const EvaluatedSample* find_same_image(const std::vector<EvaluatedSample>& samples,
                                       const EvaluatedSample& like) {
  const auto found = std::ranges::find_if(samples, [&](const EvaluatedSample& sample) {
    return sample.sample_id == like.sample_id && sample.image_path == like.image_path;
  });
  return found == samples.end() ? nullptr : &*found;
}

std::vector<size_t> evenly_spaced_indices(size_t total, int count) {
  const size_t num_chosen = std::min(total, static_cast<size_t>(count));
  std::vector<size_t> chosen;
  for (size_t k = 0; k < num_chosen; ++k) chosen.push_back(k * total / num_chosen);
  return chosen;
}

}  // namespace rematch
