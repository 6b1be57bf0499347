#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/settings/data.h"

namespace rematch {

/// Variables of a chat template and their values.
using TemplateVariables = std::map<std::string, bool>;

/// The prompt that a checkpoint was trained with, stored as `rematch_prompt.json` next to its
/// weights.
struct StoredPrompt {
  PromptSettings texts;
  int max_new_tokens = 512;
  std::string answer_format = kDefaultAnswerFormat;         ///< absent in files of older versions
  ImageBackend image_backend = ImageBackend::kTorchvision;  ///< may be absent too
  /// as PromptEncoder::template_variables; absent in the file if empty. A server must pass the same
  TemplateVariables template_variables;
};

/// Name of the file in a checkpoint.
inline constexpr const char* kStoredPromptFile = "rematch_prompt.json";

/// Writes the file into a checkpoint's directory.
/// @throws UserError (environment)
void write_stored_prompt(const std::string& directory, const StoredPrompt& prompt);

/// Reads the file; nullopt if the directory has none.
/// @throws UserError (data) if it is damaged
std::optional<StoredPrompt> read_stored_prompt(const std::string& directory);

}  // namespace rematch
