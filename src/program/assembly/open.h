#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/settings/settings.h"
#include "learn/data/dataset.h"
#include "learn/estep/answer/answer_format.h"
#include "model/text/prompt.h"
#include "model/vision/patches.h"
#include "program/assembly/report.h"

namespace rematch {

/// The use that a command makes of a model, and of data.
enum class Use {
  kTrain,         ///< training records, and validation records where the configuration has them
  kEvaluate,      ///< answers for the validation records, and in stage 1 their loss
  kAnswer,        ///< answers for the validation records
  kAnswerTrain,   ///< answers for the training records, as they are
  kAnswerImages,  ///< answers for images without records
};

/// True if the command generates answers.
bool rolls_out(Use use, const Settings& settings);
/// The same, or the command lets the model answer at its start to find the order of the answers
/// (`custom.object_ordering: own`).
/// @throws UserError (data) if the order that the model's directory keeps is damaged
bool needs_backend(Use use, const Settings& settings);
/// True if the command measures the loss on the whole truth of the validation records.
bool measures_truth(Use use, const Settings& settings);

/// A model's files other than its weights.
struct ModelFiles {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::string format_name;  ///< in answer_formats()
  std::unique_ptr<const AnswerFormat> format;
  PatchOptions patches;
  std::unique_ptr<const PromptEncoder> prompts;
};

/// Reads and checks them.
/// @return nullopt when the report collected a problem
/// @throws UserError unless the report collects
std::optional<ModelFiles> open_model(const Settings& settings, Use use, Report& report);

/// The records that a command uses.
struct Data {
  std::optional<Dataset> train;  ///< Use::kTrain
  std::optional<Dataset> val;    ///< the records to answer or to evaluate
  /// samples that `template.truncation_strategy: delete` dropped
  int64_t num_long_dropped = 0, num_long_dropped_val = 0;
};

/// Reads and checks records and image headers.
/// @param files  null: the checks that need a model are left out
/// @throws UserError unless the report collects; Interrupted
Data open_data(const Settings& settings, const ModelFiles* files, Use use, Report& report);

}  // namespace rematch
