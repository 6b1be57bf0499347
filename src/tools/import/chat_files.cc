#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tools/import/chat_steps.h"

namespace rematch {
namespace {

constexpr SourceForm kForm = {
    .command = "from-qwen",
    .ending = ".jsonl",
    .fix =
        "write \"messages\" with user and assistant, an answer [{\"bbox_2d\": [x1, y1, x2, y2], "
        "\"label\": \"cat\"}], and \"images\": [path]"};

using Role = ChatTurn::Role;

[[noreturn]] void refuse(const std::string& what, const Json& found) {
  throw LeftOut{reason::kDamagedRecord,
                fmt::format("expected {}, found {}", what, show_json(found))};
}

Role read_role(const Json& message) {
  const std::string role = text_member(message, {"role", "from"});
  if (role == "system") return Role::kSystem;
  if (role == "user" || role == "human") return Role::kUser;
  if (role == "assistant" || role == "gpt") return Role::kAssistant;
  refuse("the role user, human, assistant, gpt or system", message);
}

/// Adds the images of "path", {"path": …}, {"url": …} or a list of these, each once.
void add_images(const Json& value, Strings& images) {
  if (value.is_array()) {
    for (const Json& item : value) add_images(item, images);
    return;
  }
  const std::string path = image_path_of(value);
  if (path.empty() || path.find('\0') != path.npos) refuse("the path of an image", value);
  if (!contains(images, path)) images.push_back(path);
}

/// Reads a string, or a list of parts {"type": "text" | "image" | "image_url", …}.
std::string read_content(const Json& message, ChatRecord& chat) {
  const Json& content = member(message, {"content", "value"});
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) refuse("text or a list of parts", message);
  std::string text;
  for (const Json& part : content) {
    // columns of a table have all members in each part, null where they do not apply
    const Json &words = member(part, {"text"}),
               &image = member(part, {"image", "image_url", "path", "url"}),
               &size =
                   member(part, {"resized_height", "resized_width", "min_pixels", "max_pixels"});
    chat.has_own_size = chat.has_own_size || !size.is_null();
    // An image part without a path stands for an image of the record.
    if (words.is_string())
      text += words.get<std::string>();
    else if (words.is_null() && !image.is_null())
      add_images(image, chat.images);
    else if (!words.is_null() || text_member(part, {"type"}) != "image")
      refuse("text or an image", part);
  }
  return text;
}

/// A user's text without the marks of images, which are counted.
std::string clean_question(std::string text, int& num_marks) {
  for (const std::string_view mark : {"<|vision_start|><|image_pad|><|vision_end|>", "<image>"}) {
    for (size_t at = text.find(mark); at != text.npos; at = text.find(mark, at)) {
      text.erase(at, mark.size());
      ++num_marks;
    }
  }
  return python_strip(text);
}

/// @throws LeftOut for a record or a text that is not to be learned from
void refuse_other_uses(const Json& record, const ChatRecord& chat) {
  for (const char* key : {"label", "kto_tag"}) {
    const Json& verdict = member(record, {key});
    if (verdict == false || verdict == 0)
      throw LeftOut{reason::kOtherUse, "it is marked as a bad answer"};
  }
  const Json& videos = member(record, {"videos", "video"});
  if (!videos.empty() && videos != "") throw LeftOut{reason::kOtherUse, "it has a video"};
  for (const ChatTurn& turn : chat.turns) {
    const auto has = [&](const char* mark) { return turn.text.find(mark) != std::string::npos; };
    for (const char* mark : {"<tool_call>", "<tool_response>", "<video>"}) {
      if (has(mark)) throw LeftOut{reason::kOtherUse, std::string("it has a ") + mark};
    }
    if (turn.role == Role::kUser && has("<img>"))
      throw LeftOut{reason::kSeveralImages, "an <img> in the question"};
  }
  if (chat.images.size() != 1 || chat.num_marks > 1)
    throw LeftOut{reason::kSeveralImages, fmt::format("images: {}, marks of images: {}",
                                                      chat.images.size(), chat.num_marks)};
}

/// The members of a record that training ignores and a round trip keeps.
std::string read_extra(const Json& record) {
  Json extra;
  for (const char* key : {"summary", "metadata"}) {
    if (const auto value = record.find(key); value != record.end()) extra[key] = *value;
  }
  return extra.is_null() ? "" : extra.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// @throws LeftOut
void read_record(const Json& record, const std::string& path, const std::string& where,
                 ForeignSet& set, ForeignImages& images) {
  const ChatRecord chat = read_chat(record);
  if (chat.has_own_size && set.options.scale.unit == StockScale::Unit::kResizedPixels)
    throw LeftOut{"an image resized by its message, in answers of --scale pixels",
                  "\"resized_height\", \"max_pixels\" and the like"};
  ForeignImage image = image_of_record(record, chat.images.front(), path, where);
  image.extra = read_extra(record);
  for (ForeignImage& answer : read_conversation(chat.turns, std::move(image), record, set))
    images.push_back(std::move(answer));
}

}  // namespace

ChatRecord read_chat(const Json& record) {
  ChatRecord chat;
  for (const char* key : {"images", "image"}) {
    if (const Json& value = member(record, {key}); !value.is_null()) add_images(value, chat.images);
  }
  const Json& messages = member(record, {"messages", "conversations"});
  if (messages.is_null() ? member(record, {"objects"}).is_null() : !messages.is_array())
    refuse("\"messages\" or \"conversations\"", record);
  for (const Json& message : messages) {
    ChatTurn turn{.role = read_role(message), .text = read_content(message, chat)};
    turn.is_learned = member(message, {"loss"}) != false && member(message, {"weight"}) != 0;
    if (turn.role == Role::kUser) turn.text = clean_question(turn.text, chat.num_marks);
    chat.turns.push_back(std::move(turn));
  }
  refuse_other_uses(record, chat);
  return chat;
}

ForeignSet read_chat_files(const Strings& sources, const ImportOptions& options) {
  ForeignSet set{.repeats_images = true, .assumed_form = BoxForm::kCorners, .options = options};
  return read_sources(sources, kForm, std::move(set), each_record(read_record));
}

}  // namespace rematch
