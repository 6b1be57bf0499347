#include "tools/import/chat_record.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tools/import/json_value.h"

namespace rematch {
namespace {

constexpr std::string_view kImageMarks[] = {"<|vision_start|><|image_pad|><|vision_end|>",
                                            "<image>"};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

ChatTurn::Role read_role(JsonFields& message, const char* key) {
  const std::string role = message.text(key);
  if (role == "system") return ChatTurn::Role::kSystem;
  if (role == "user" || role == "human") return ChatTurn::Role::kUser;
  if (role == "assistant" || role == "gpt") return ChatTurn::Role::kAssistant;
  message.fail(key, fmt::format("expected user, human, assistant, gpt or system, found {}",
                                python_json_string(role)));
}

/// Checks the path of an image and removes "file://".
/// @param fields, key  place for the error
std::string check_image_path(JsonFields& fields, const std::string& key, std::string path) {
  constexpr std::string_view kFile = "file://";
  if (path.starts_with(kFile)) path.erase(0, kFile.size());
  if (path.starts_with("data:"))
    fields.fail(key, fmt::format("expected a file, found {}", show_json(path)));
  if (path.empty() || path.find('\0') != std::string::npos)
    fields.fail(key, fmt::format("expected the path of an image, found {}", show_json(path)));
  return path;
}

/// Adds an image unless the record has named it already.
void add_image(std::string path, std::vector<std::string>& images) {
  if (std::find(images.begin(), images.end(), path) == images.end())
    images.push_back(std::move(path));
}

/// Adds the images of "path", {"path": …}, {"url": …} or a list of these.
void add_images(const Json& value, JsonFields& fields, const std::string& key,
                std::vector<std::string>& images) {
  if (value.is_array()) {
    for (const Json& item : value) add_images(item, fields, key, images);
  } else if (value.is_string()) {
    add_image(check_image_path(fields, key, value.get<std::string>()), images);
  } else {
    const auto member = [&](const char* name) { return value.is_object() && value.contains(name); };
    const char* name = member("path") ? "path" : member("url") ? "url" : nullptr;
    if (name == nullptr || !value[name].is_string())
      fields.fail(key, fmt::format("expected the path of an image, found {}", show_json(value)));
    add_image(check_image_path(fields, key, value[name].get<std::string>()), images);
  }
}

/// Reads a string, or a list of parts {"type": "text" | "image" | "image_url", …}.
std::string read_content(JsonFields& message, const std::string& key, const JsonOrigin& origin,
                         ChatRecord& chat) {
  const Json& content = message.at(key);
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array())
    message.fail(key,
                 fmt::format("expected text or a list of parts, found {}", show_json(content)));
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    JsonFields part(content[i], origin, fmt::format("{}[{}]", message.place_of(key), i));
    // columns of a table have all members in each part, null where they do not apply
    if (find_member(content[i], "text") != nullptr) {
      text += part.text("text");
      continue;
    }
    bool has_image = false;
    for (const char* name : {"image", "image_url", "path", "url"}) {
      const Json* value = has_image ? nullptr : find_member(content[i], name);
      if (value == nullptr) continue;
      add_images(*value, part, name, chat.images);
      has_image = true;
    }
    for (const char* name : {"resized_height", "resized_width", "min_pixels", "max_pixels"})
      chat.has_own_size = chat.has_own_size || find_member(content[i], name) != nullptr;
    // An image part without a path stands for an image of the record.
    if (!has_image && part.text_or("type", "") != "image")
      part.fail("type", fmt::format("expected text or an image, found {}", show_json(content[i])));
  }
  return text;
}

}  // namespace

bool is_chat(const Json& record) {
  return record.is_object() && (record.contains("messages") || record.contains("conversations") ||
                                (record.contains("query") && record.contains("response")));
}

std::string remove_image_marks(std::string text) {
  for (const std::string_view mark : kImageMarks) replace_all(text, mark, "");
  return python_strip(text);
}

namespace {

/// A user's text without the marks of images, whose number is kept.
std::string clean_question(std::string text, ChatRecord& chat) {
  for (const std::string_view mark : kImageMarks) {
    for (size_t at = text.find(mark); at != text.npos; at = text.find(mark, at + mark.size()))
      ++chat.num_marks;
  }
  return remove_image_marks(std::move(text));
}

/// False for a message with `loss` false or `weight` 0, which trainers leave out of the loss.
bool is_learned(const Json& message) {
  const Json* loss = find_member(message, "loss");
  const Json* weight = find_member(message, "weight");
  return !(loss != nullptr && *loss == false) && !(weight != nullptr && *weight == 0);
}

/// Adds the turns of the old form: `history` of pairs, then `query` and `response`.
void add_query_turns(JsonFields& fields, ChatRecord& chat) {
  const auto add = [&](ChatTurn::Role role, std::string text) {
    if (role == ChatTurn::Role::kUser) text = clean_question(std::move(text), chat);
    chat.turns.push_back({.role = role, .text = std::move(text)});
  };
  if (const std::string system = fields.text_or("system", ""); !system.empty())
    add(ChatTurn::Role::kSystem, system);
  const Json* history = fields.find("history");
  for (size_t i = 0; history != nullptr && history->is_array() && i < history->size(); ++i) {
    const Json& pair = (*history)[i];
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string())
      fields.fail("history", "expected pairs of a query and a response");
    add(ChatTurn::Role::kUser, pair[0].get<std::string>());
    add(ChatTurn::Role::kAssistant, pair[1].get<std::string>());
  }
  add(ChatTurn::Role::kUser, fields.text("query"));
  add(ChatTurn::Role::kAssistant, fields.text("response"));
}

}  // namespace

ChatRecord read_chat(const Json& record, const JsonOrigin& origin) {
  JsonFields fields(record, origin);
  const bool has_messages = fields.has("messages");
  ChatRecord chat;
  for (const char* key : {"images", "image"}) {
    const Json* value = fields.find(key);
    if (value != nullptr && !value->is_null()) add_images(*value, fields, key, chat.images);
  }
  if (!has_messages && !fields.has("conversations")) {
    add_query_turns(fields, chat);
    return chat;
  }
  const char* list_key = has_messages ? "messages" : "conversations";
  const Json& list = fields.list(list_key);
  for (size_t i = 0; i < list.size(); ++i) {
    JsonFields message(list[i], origin, fmt::format("{}[{}]", list_key, i));
    const bool has_role = message.has("role") || has_messages;
    ChatTurn turn{.role = read_role(message, has_role ? "role" : "from")};
    turn.text = read_content(message, message.has("content") || has_messages ? "content" : "value",
                             origin, chat);
    turn.is_learned = is_learned(list[i]);
    if (turn.role == ChatTurn::Role::kUser) turn.text = clean_question(std::move(turn.text), chat);
    chat.turns.push_back(std::move(turn));
  }
  return chat;
}

}  // namespace rematch
