#include "tools/import/chat_record.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace rematch {
namespace {

constexpr std::string_view kImageMarks[] = {"<|vision_start|><|image_pad|><|vision_end|>",
                                            "<image>"};

/// The key names of a message format.
struct Dialect {
  const char *list, *role, *content;
};
constexpr Dialect kDialects[] = {{"messages", "role", "content"},
                                 {"conversations", "from", "value"}};

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
                         std::vector<std::string>& images) {
  const Json& content = message.at(key);
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array())
    message.fail(key,
                 fmt::format("expected text or a list of parts, found {}", show_json(content)));
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    JsonFields part(content[i], origin, fmt::format("{}[{}]", message.place_of(key), i));
    if (part.has("text")) {
      text += part.text("text");
      continue;
    }
    bool has_image = false;
    for (const char* name : {"image", "image_url", "path", "url"}) {
      const Json* value = has_image ? nullptr : part.find(name);
      if (value == nullptr) continue;
      add_images(*value, part, name, images);
      has_image = true;
    }
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

/// Adds the turns of the old form: `history` of pairs, then `query` and `response`.
void add_query_turns(JsonFields& fields, ChatRecord& chat) {
  const auto add = [&](ChatTurn::Role role, std::string text) {
    if (role == ChatTurn::Role::kUser) text = remove_image_marks(std::move(text));
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
  const Dialect& dialect = kDialects[has_messages ? 0 : 1];
  ChatRecord chat;
  for (const char* key : {"images", "image"}) {
    const Json* value = fields.find(key);
    if (value != nullptr && !value->is_null()) add_images(*value, fields, key, chat.images);
  }
  if (!has_messages && !fields.has("conversations")) {
    add_query_turns(fields, chat);
    return chat;
  }
  const Json& list = fields.list(dialect.list);
  for (size_t i = 0; i < list.size(); ++i) {
    JsonFields message(list[i], origin, fmt::format("{}[{}]", dialect.list, i));
    ChatTurn turn{.role = read_role(message, dialect.role),
                  .text = read_content(message, dialect.content, origin, chat.images)};
    if (turn.role == ChatTurn::Role::kUser) turn.text = remove_image_marks(std::move(turn.text));
    chat.turns.push_back(std::move(turn));
  }
  return chat;
}

}  // namespace rematch
