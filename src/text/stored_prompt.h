#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "settings/data.h"

namespace rematch {

/// The prompt of a checkpoint's training; `rematch_prompt.json` next to its weights.
struct StoredPrompt {
  PromptSettings texts;
  int max_new_tokens = 512;
  std::string answer_format = kDefaultAnswerFormat;  ///< absent in files of older versions
  /// which image processor was followed; may be absent too
  ImageBackend image_backend = ImageBackend::kTorchvision;
};

/// Name of the file in a checkpoint.
inline constexpr const char* kStoredPromptFile = "rematch_prompt.json";

/// Writes it into a checkpoint's directory. @throws UserError (environment)
void write_stored_prompt(const std::string& directory, const StoredPrompt& prompt);

/// Reads it; none when the directory has no such file. @throws UserError (data) when it is damaged
std::optional<StoredPrompt> read_stored_prompt(const std::string& directory);

}  // namespace rematch
