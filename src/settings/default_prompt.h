#pragma once

namespace rematch {

/// The user's text of samples without a `prompt`, where `custom.user_prompt` is not set.
inline constexpr const char* kDefaultUserPrompt = "List every object in this image as JSON.";

}  // namespace rematch
