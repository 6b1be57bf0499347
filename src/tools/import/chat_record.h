#pragma once
#include <string>
#include <vector>

#include "base/json.h"
#include "tools/import/foreign.h"
#include "tools/import/placeholders.h"

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
  Strings images;             ///< paths in `image`, `images` and message parts, as written
  int num_marks = 0;          ///< image marks in the user's texts
  bool has_own_size = false;  ///< a part says how its image is resized
};

/// Reads a conversation; of a record with `objects` alone it has no turns.
/// @throws LeftOut for one that is not for training, or that cannot be read
ChatRecord read_chat(const Json& record);

/// Reads the answers of a conversation, each with the question before it.
/// @param image   that of the record
/// @param filled  the names and boxes for the places in its texts
/// @throws LeftOut
std::vector<ForeignImage> read_conversation(const std::vector<ChatTurn>& turns, ForeignImage image,
                                            Placeholders filled, const ImportOptions& options,
                                            Ledger& ledger);

}  // namespace rematch
