#pragma once
#include <optional>
#include <string>

#include "learn/data/dataset.h"

namespace rematch {

/// The prompt with the names of the classes, most frequent first: "… Labels: cat, dog."
struct ClassPrompt {
  /// nullopt where a list helps nothing: more than 40 classes, free text (fewer than two objects a
  /// class), or records that have prompts
  std::optional<std::string> text;
  std::string note;  ///< for too many classes
};
ClassPrompt class_list_prompt(const Dataset& train, const std::string& prompt);

/// Warns of classes that the list of a checkpoint's prompt lacks; empty if it lacks none, or has no
/// list.
Strings unlisted_classes(const Dataset& train, const std::string& prompt);

}  // namespace rematch
