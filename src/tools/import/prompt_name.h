#pragma once
#include <optional>
#include <string>

namespace rematch {

/// The name in a question by a pattern with "{}" for it, e.g. "Locate {} in": the shortest text
/// between the two parts, trimmed. Letter case of the parts does not matter.
/// @return nullopt if the question does not fit
std::optional<std::string> find_name(const std::string& pattern, const std::string& question);

/// @throws UserError (configuration) for a pattern without "{}", or with several
void check_name_pattern(const std::string& pattern);

}  // namespace rematch
