#include "learn/evaluate/score_calibration.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json_fields.h"

namespace rematch {
namespace {

constexpr double kLeastScore = 1e-300;  // a score of 0 is an underflow
/// Share of the raw score in a calibrated one: scores of one group keep their order.
constexpr double kRawShare = 1e-6;

double log_score(double score) { return std::log(std::max(score, kLeastScore)); }

// Scores that share a precision.
struct Group {
  double count = 0, hits = 0, log_sum = 0;

  double precision() const { return hits / count; }
  void add(const Group& other) {
    count += other.count;
    hits += other.hits;
    log_sum += other.log_sum;
  }
};

// Groups of at least `size` predictions, ascending; equal scores share a group.
std::vector<Group> make_groups(const std::vector<RankedClass::Prediction>& ascending, size_t size) {
  std::vector<Group> groups;
  double last_score = -1;
  for (const auto& [score, is_hit] : ascending) {
    const bool is_full = groups.empty() || (groups.back().count >= size && score != last_score);
    if (is_full) groups.emplace_back();
    groups.back().add({1, is_hit ? 1.0 : 0.0, log_score(score)});
    last_score = score;
  }
  if (groups.size() > 1 && groups.back().count < size) {
    const Group rest = groups.back();
    groups.pop_back();
    groups.back().add(rest);
  }
  return groups;
}

// Pools neighbours until precision ascends.
std::vector<Group> pool_violators(const std::vector<Group>& groups) {
  std::vector<Group> pooled;
  for (const Group& group : groups) {
    pooled.push_back(group);
    while (pooled.size() > 1 &&
           pooled[pooled.size() - 2].precision() >= pooled.back().precision()) {
      const Group last = pooled.back();
      pooled.pop_back();
      pooled.back().add(last);
    }
  }
  return pooled;
}

}  // namespace

std::optional<ScoreCalibration> ScoreCalibration::fit(
    std::vector<RankedClass::Prediction> predictions) {
  if (predictions.empty()) return std::nullopt;
  std::ranges::sort(predictions, {},
                    [](const auto& one) { return std::pair(one.score, one.is_hit); });
  const auto size =
      static_cast<size_t>(std::ceil(std::sqrt(static_cast<double>(predictions.size()))));
  ScoreCalibration calibration;
  for (const Group& group : pool_violators(make_groups(predictions, size)))
    calibration.points_.push_back({std::exp(group.log_sum / group.count), group.precision()});
  return calibration;
}

double ScoreCalibration::operator()(double raw_score) const {
  const auto above = std::ranges::upper_bound(points_, raw_score, {}, &Point::score);
  double precision = 0;
  if (above == points_.begin()) {
    precision = points_.front().precision;
  } else if (above == points_.end()) {
    precision = points_.back().precision;
  } else {
    const Point& below = *std::prev(above);
    const double share = (log_score(raw_score) - log_score(below.score)) /
                         (log_score(above->score) - log_score(below.score));
    precision = below.precision + share * (above->precision - below.precision);
  }
  return (1 - kRawShare) * precision + kRawShare * std::clamp(raw_score, 0.0, 1.0);
}

std::vector<double> ScoreCalibration::operator()(std::vector<double> raw_scores) const {
  for (double& score : raw_scores) score = (*this)(score);
  return raw_scores;
}

std::optional<ScoreCalibration> ScoreCalibration::read(const std::string& directory) {
  const std::string path = join_path(directory, kScoreCalibrationFile);
  if (!path_exists(path)) return std::nullopt;
  const JsonOrigin origin{.path = path,
                          .error = "the calibration of this checkpoint's scores cannot be read",
                          .fix = "remove the file; `rematch eval` writes a new one"};
  const Json json = parse_document(read_file(path), origin);
  JsonFields fields(json, origin);
  ScoreCalibration calibration;
  calibration.eval_set_ = fields.text_or("eval_set", "");
  if (fields.has("step")) calibration.step_ = fields.integer("step", 0);
  if (fields.has("weights_step")) calibration.weights_step_ = fields.integer("weights_step", 0);
  for (const Json& point : fields.list("points")) {
    const bool is_pair =
        point.is_array() && point.size() == 2 && point[0].is_number() && point[1].is_number();
    const Point next = is_pair ? Point{point[0].get<double>(), point[1].get<double>()} : Point{};
    const Point last = calibration.points_.empty() ? Point{} : calibration.points_.back();
    if (!(next.score > last.score && next.score <= 1 && next.precision >= last.precision &&
          next.precision <= 1))
      fields.fail("points", show_json(point));
    calibration.points_.push_back(next);
  }
  if (calibration.points_.empty()) fields.fail("points", "no list of [score, precision]");
  fields.finish();
  return calibration;
}

void ScoreCalibration::write(const std::string& directory, int64_t weights_step) const {
  Json json;
  json["eval_set"] = eval_set_;
  if (step_) json["step"] = *step_;
  if (step_ && step_ != weights_step) json["weights_step"] = weights_step;
  json["points"] = Json::array();
  for (const Point& point : points_) json["points"].push_back({point.score, point.precision});
  write_file_atomic(join_path(directory, kScoreCalibrationFile), python_json(json) + "\n");
}

std::optional<int64_t> ScoreCalibration::weights_step(const std::string& checkpoint) const {
  const std::optional<int64_t> step = step_of_weights(checkpoint);
  return step ? step : weights_step_;
}

bool ScoreCalibration::fits(const std::string& checkpoint) const {
  const std::optional<int64_t> step = weights_step(checkpoint);
  return !step || step_.value_or(*step) == *step;
}

std::optional<int64_t> step_of_weights(const std::string& directory) {
  try {
    return read_json_file(join_path(directory, "trainer_state.json"))
        .at("global_step")
        .get<int64_t>();
  } catch (const std::exception&) {
    return std::nullopt;  // only a run that resumes needs the file
  }
}

}  // namespace rematch
