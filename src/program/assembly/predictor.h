#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "learn/evaluate/score_calibration.h"
#include "program/assembly/engine.h"

namespace rematch {

/// Options of a predictor.
struct PredictorOptions {
  /// directory of a Hugging Face model, of a PEFT adapter (with its base model), or of a run
  /// (find_model)
  std::string model_dir;
  std::string adapter_dir;  ///< PEFT directory; empty = none
  bool force_base = false;  ///< as AdapterUse::force_base
  std::string backend = "native";
  std::string device = "auto";
  std::string answer_format;  ///< empty = format of the checkpoint (checkpoint_format.h)
  PromptSettings texts;       ///< replace the texts stored with the checkpoint
  int max_new_tokens = 0;     ///< 0 = as stored with the checkpoint
};

/// The answer for one image.
struct Prediction {
  std::string path;
  int width_px = 0, height_px = 0;   ///< of the image as viewers show it
  std::vector<SceneObject> objects;  ///< in the order of the answer
  std::vector<double> raw_scores;    ///< of the objects (BEHAVIOUR 20.2), or empty
  std::vector<double> scores;        ///< calibrated; empty when the checkpoint has no calibration
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
  /// @throws UserError for a directory without model or adapter, and as open_job()
  Predictor(const PredictorOptions& options, Terminal& terminal);

  /// Answers images, in order, each turned upright as its EXIF says. An unreadable image gets a
  /// reason and does not affect the others.
  std::vector<Prediction> predict(const std::vector<std::string>& paths);

 private:
  Prompt make_image_prompt(const Prediction& image) const;
  void answer(std::vector<Prompt> prompts, const std::vector<Prediction*>& predictions);

  Job job_;
  Engine engine_;
  std::optional<ScoreCalibration> calibration_;
  int64_t num_answered_ = 0;
};

/// Lists images: files as given, and the JPEG, PNG and WebP files of directories, by name. Includes
/// broken links, which predict() reports as unreadable.
/// @throws UserError (environment) for a path that does not exist, (data) when there is none
std::vector<std::string> list_images(const std::vector<std::string>& paths);

}  // namespace rematch
