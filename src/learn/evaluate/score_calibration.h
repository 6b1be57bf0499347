#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "learn/evaluate/coco.h"

namespace rematch {

/// Maps a raw score to a precision: the share of objects with this score that are right, in place
/// (IoU 0.5) and name. Fitted on an evaluation and stored in the checkpoint.
///
/// Raw scores (object_score.h) rank objects, but are low: a coordinate shares its probability with
/// its neighbours.
class ScoreCalibration {
 public:
  /// A group of scores; both ascend from one to the next.
  struct Point {
    double score = 0;      ///< geometric mean of the raw scores
    double precision = 0;  ///< share of hits
    friend bool operator==(const Point&, const Point&) = default;
  };

  /// Fits a monotone function by pooling adjacent violators, over groups of about √n scores.
  /// @return nullopt without predictions
  static std::optional<ScoreCalibration> fit(std::vector<RankedClass::Prediction> predictions);

  /// Reads the calibration of a checkpoint.
  /// @return nullopt when it has none
  /// @throws UserError (data) for a damaged file
  static std::optional<ScoreCalibration> read(const std::string& directory);
  /// Writes `rematch_scores.json`. @throws UserError (environment)
  /// @param weights_step  optimizer steps of the weights in `directory`
  void write(const std::string& directory, int64_t weights_step) const;

  /// The precision that a raw score stands for, in [0, 1]. Strictly ascending in the raw score, so
  /// that ranks stay.
  double operator()(double raw_score) const;
  /// Maps all scores of an answer.
  std::vector<double> operator()(std::vector<double> raw_scores) const;

  /// The validation set of the fit (eval_set_text()); may be empty.
  const std::string& eval_set() const { return eval_set_; }
  void set_eval_set(std::string text) { eval_set_ = std::move(text); }
  /// Optimizer steps of the weights of the fit; nullopt in files of older versions.
  std::optional<int64_t> step() const { return step_; }
  void set_step(int64_t step) { step_ = step; }
  /// Optimizer steps of the weights in `checkpoint`, where this fit was read; nullopt if neither
  /// its trainer_state.json nor the fit tells.
  std::optional<int64_t> weights_step(const std::string& checkpoint) const;
  /// False if `checkpoint` has weights of another step than those of the fit.
  bool fits(const std::string& checkpoint) const;
  const std::vector<Point>& points() const { return points_; }

 private:
  std::vector<Point> points_;
  std::string eval_set_;
  std::optional<int64_t> step_, weights_step_;
};

/// Optimizer steps of a run's checkpoint, from its trainer_state.json; nullopt for any other
/// directory.
std::optional<int64_t> step_of_weights(const std::string& directory);

/// Name of the file in a checkpoint.
inline constexpr const char* kScoreCalibrationFile = "rematch_scores.json";

}  // namespace rematch
