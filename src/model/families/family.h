#pragma once
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "model/families/description.h"

namespace rematch {

/// A model architecture: converts its config.json to a description, and holds the few rules for its
/// text that are in no checkpoint file.
struct Family {
  std::string title;  ///< for messages
  /// in config.json; also the family's name in `template.template`
  std::string model_type;
  Strings architectures;  ///< in config.json, used if it has no model type
  /// @param config  config.json, an object.
  /// @throws UserError (data) for invalid or unsupported values
  ModelDescription (*describe)(const Json& config, const JsonOrigin& origin) = nullptr;
  /// `tokenizer_class` of tokenizers that may consist of only vocab.json and merges.txt, and their
  /// split pattern
  Strings tokenizer_classes;
  std::string split_pattern;
  /// answer format of its published checkpoints: a name in answer_formats()
  std::string stock_answer_format;
};

/// The known families, built-in ones first.
const std::vector<Family>& families();

/// Adds a family. Call it before any model is loaded; not thread-safe.
void register_family(Family family);

/// Reads and checks DIR/config.json.
/// @throws UserError (data) for an unknown family, and as Family::describe
ModelDescription describe_model(const std::string& model_dir);

/// The stock answer format of the family of DIR/config.json.
/// @throws UserError (data) as describe_model
std::string stock_answer_format(const std::string& model_dir);

}  // namespace rematch
