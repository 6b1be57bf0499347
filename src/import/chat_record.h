#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fields.h"

namespace rematch {

/// A message of a conversation.
struct ChatTurn {
  enum class Role { kSystem, kUser, kAssistant };
  Role role = Role::kUser;
  std::string text;  ///< as written; a user's without the marks of images, trimmed
};

/// A record of a conversation: `messages` (role, content) or `conversations` (from, value).
struct ChatRecord {
  std::vector<ChatTurn> turns;
  std::vector<std::string> images;  ///< of `image`, `images` and the parts of messages, as written
};

/// True for a record with `messages` or `conversations`.
bool is_chat(const Json& record);

/// @throws UserError (data) naming the field: no messages, an unknown role, content that is neither
/// text nor parts, an image that is no path
ChatRecord read_chat(const Json& record, const JsonOrigin& origin);

/// A user's text without the marks of images, trimmed.
std::string without_image_marks(std::string text);

}  // namespace rematch
