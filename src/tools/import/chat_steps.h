#pragma once
#include "tools/import/source_files.h"

// The steps from a conversation to the objects of its answers.
namespace rematch {

/// A message of a conversation.
struct ChatTurn {
  enum class Role { kSystem, kUser, kAssistant };
  Role role = Role::kUser;
  std::string text;        ///< as written; a user's text is trimmed and has no image marks
  bool is_learned = true;  ///< false: `loss` is false or `weight` is 0
};

/// A conversation record: `messages` (role, content) or `conversations` (from, value).
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
/// @param record  whose `objects` fill the places in its texts
/// @throws LeftOut
ForeignImages read_conversation(const std::vector<ChatTurn>& turns, ForeignImage image,
                                const Json& record, ForeignSet& set);

/// An image with the objects of an answer, in the unit of its numbers.
struct ImportedAnswer {
  ForeignImage image;
  bool is_list = false;                                  ///< of boxes, perhaps an empty one
  std::string reason = reason::kNotAList, problem = {};  ///< why it is not

  size_t num_entries() const { return image.objects.size() + image.lost.size(); }
};

/// Reads the text of an answer: the wrappers of BEHAVIOUR 19.4, entries without a list around them,
/// one entry a line, and the older marks `<ref>`, `<box>`, `<|object_ref_start|>`, `<|box_start|>`.
/// @param text  after a think block (AnswerPlace::start)
/// @param image  that of the answer
ImportedAnswer read_answer(std::string_view text, const ForeignImage& image, ForeignSet& set);

/// True if the text has a member of a geometry, a list of two numbers or more, or old marks.
bool mentions_geometry(std::string_view text);

/// Removes the marks of names from a question: "Find <ref>a cat</ref>" becomes "Find a cat".
/// @return the name if there is exactly one, else ""
std::string unmark_names(std::string& question);

/// The name in a question by a pattern with "{}" for it, e.g. "Locate {} in": the shortest text
/// between the two parts, trimmed. Letter case of the parts does not matter.
/// @return "" if the question does not fit
std::string find_name(const std::string& pattern, const std::string& question);

/// @throws UserError (configuration) for a pattern without "{}", or with several
void check_name_pattern(const std::string& pattern);

}  // namespace rematch
