#pragma once
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "model/families/description.h"

namespace rematch {

/// A kind of model: how its config.json becomes a description, and the few rules of its text that no file of a checkpoint says.
struct Family {
  std::string title;                       ///< for messages
  std::string model_type;                  ///< of config.json, and what `template.template` calls the family
  std::vector<std::string> architectures;  ///< of config.json, looked at when it names no model type
  /// @param config  the document config.json, an object. @throws UserError (data) for values that are damaged or not implemented
  ModelDescription (*describe)(const Json& config, const JsonOrigin& origin) = nullptr;
  /// `tokenizer_class` of tokenizers that may come as vocab.json and merges.txt, and the split pattern that they build in.
  std::vector<std::string> tokenizer_classes;
  std::string split_pattern;
};

/// The families that are known, built-in ones first.
const std::vector<Family>& families();

/// Adds a family. Before any model is loaded, from one thread.
void register_family(Family family);

/// Reads and checks DIR/config.json. @throws UserError (data) for a family that is not known, and as Family::describe
ModelDescription describe_model(const std::string& model_dir);

}  // namespace rematch
