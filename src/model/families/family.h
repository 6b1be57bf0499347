#pragma once
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "model/families/description.h"

namespace rematch {

/// A kind of model: how its config.json becomes a description, and the few rules for its text that
/// are in no file of a checkpoint.
struct Family {
  std::string title;  ///< for messages
  /// of config.json, and the family's name in `template.template`
  std::string model_type;
  std::vector<std::string> architectures;  ///< of config.json, used when it has no model type
  /// @param config  the document config.json, an object. @throws UserError (data) for values that
  /// are invalid or not implemented
  ModelDescription (*describe)(const Json& config, const JsonOrigin& origin) = nullptr;
  /// `tokenizer_class` of tokenizers that may consist of vocab.json and merges.txt, and their
  /// built-in split pattern.
  std::vector<std::string> tokenizer_classes;
  std::string split_pattern;
  /// The answer format that its published checkpoints write: a name in answer_formats()
  std::string stock_answer_format;
};

/// The known families, built-in ones first.
const std::vector<Family>& families();

/// Adds a family. Call it before any model is loaded, from one thread.
void register_family(Family family);

/// Reads and checks DIR/config.json. @throws UserError (data) for an unknown family, and as
/// Family::describe
ModelDescription describe_model(const std::string& model_dir);

/// The stock answer format of the family of DIR/config.json. @throws UserError (data) as
/// describe_model
std::string stock_answer_format(const std::string& model_dir);

}  // namespace rematch
