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
  std::string text;        ///< as written; a user's text is trimmed and has no image marks
  bool is_learned = true;  ///< false: `loss` is false or `weight` is 0
};

/// A conversation record: `messages` (role, content), `conversations` (from, value), or the old
/// form `query` and `response` with `history`.
struct ChatRecord {
  std::vector<ChatTurn> turns;
  std::vector<std::string> images;  ///< paths in `image`, `images` and message parts, as written
  int num_marks = 0;                ///< image marks in the user's texts
  bool has_own_size = false;        ///< a part says how its image is resized
};

/// True if the record has `messages`, `conversations`, or `query` and `response`.
bool is_chat(const Json& record);

/// Reads a conversation.
/// @throws UserError (data) with the field: no messages, an unknown role, content that is neither
/// text nor parts, an image that is not a path
ChatRecord read_chat(const Json& record, const JsonOrigin& origin);

/// Removes image marks from a user's text and trims it.
std::string remove_image_marks(std::string text);

}  // namespace rematch
