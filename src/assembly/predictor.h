#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assembly/rollouts.h"
#include "assembly/session.h"
#include "base/error.h"

namespace rematch {

/// What to predict with.
struct PredictorOptions {
  /// Hugging Face directory, or a PEFT adapter's (its base model is then taken), or a run's
  /// (find_model)
  std::string model_dir;
  std::string adapter_dir;  ///< PEFT directory; empty = none
  std::string backend = "native";
  std::string device = "auto";
  std::string answer_format;  ///< empty = the checkpoint's own (checkpoint_format.h)
  PromptSettings texts;       ///< what is set here replaces what is stored with the checkpoint
  int max_new_tokens = 0;     ///< 0 = as stored with the checkpoint
};

/// The answer for one image.
struct Prediction {
  std::string path;
  int width_px = 0, height_px = 0;
  std::vector<SceneObject> objects;  ///< in the order of the answer
  std::vector<double> scores;        ///< of the objects (BEHAVIOUR 20.2); empty = none
  ParseStatus status = ParseStatus::kMalformed;
  int dropped_invalid = 0;  ///< entries of the answer that are not objects
  std::string text;         ///< the answer as written
  /// why there is no answer: the image cannot be read, or its size is illegal
  std::optional<Problem> unreadable;
};

/// A trained model with the prompt it was trained with: images in, objects out. Answers greedily,
/// as evaluation does.
class Predictor {
 public:
  /// Loads the model. @throws UserError for a directory that is neither a model nor an adapter, and
  /// as Session
  Predictor(const PredictorOptions& options, Terminal& terminal);
  ~Predictor();

  /// Answers for images, in order. One that cannot be read says why, and does not keep the others
  /// from their answers.
  std::vector<Prediction> predict(const std::vector<std::string>& paths);

 private:
  Prompt prompt_of(const Prediction& image, int64_t index) const;
  void answer(const std::vector<Prompt>& prompts, const std::vector<Prediction*>& predictions);
  Settings settings_;
  std::unique_ptr<Session> session_;
  Rollouts rollouts_;
  std::vector<TokenId> stop_ids_;
  int64_t num_answered_ = 0;
};

/// The images among the paths: files as they are, of directories the JPEG, PNG and WebP files in
/// them, by name, links that lead nowhere included: predict() says that they cannot be read.
/// @throws UserError (environment) for a path that does not exist, (data) when there is none
std::vector<std::string> images_at(const std::vector<std::string>& paths);

}  // namespace rematch
