#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "learn/evaluate/score_calibration.h"
#include "program/assembly/engine.h"

namespace rematch {

/// The answer for one image.
struct Prediction {
  std::string path;
  int width_px = 0, height_px = 0;  ///< of the image as viewers show it
  Objects objects;                  ///< in the order of the answer
  std::vector<double> raw_scores;   ///< of the objects (BEHAVIOUR 20.2), or empty
  std::vector<double> scores;       ///< calibrated; empty when the checkpoint has no calibration
  ParseStatus status = ParseStatus::kMalformed;
  int dropped_invalid = 0;  ///< entries of the answer that are not objects
  std::string text;         ///< the answer as written
  /// reason for a missing answer: the image is unreadable, or its size illegal
  std::optional<Problem> unreadable;
};

/// A trained model with the prompt it was trained with: images in, objects out. Answers greedily,
/// as evaluation does.
class Predictor {
 public:
  /// Loads the model.
  /// @param source  a question about images
  /// @throws UserError for a directory without model or adapter, and as open_job()
  Predictor(JobSource source, const Place& place);

  /// Answers images, in order, each turned upright as its EXIF says. An unreadable image gets a
  /// reason and does not affect the others.
  std::vector<Prediction> predict(const Strings& paths);

 private:
  /// Reads the size of an image, and makes its prompt.
  Prompt open_image(Prediction& image);
  void answer(std::vector<ScoredRollout> rollouts, const std::vector<Prediction*>& predictions);

  Asking asking_;
  std::optional<ScoreCalibration> calibration_;
  int64_t num_answered_ = 0;
};

}  // namespace rematch
