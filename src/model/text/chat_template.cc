#include "model/text/chat_template.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "model/text/jinja/jinja.h"

namespace rematch {
namespace {

struct Source {
  std::string path;
  std::string text;
};

[[noreturn]] void fail(const std::string& where, const std::string& error, const std::string& what,
                       const std::string& fix) {
  throw data_error({.error = error, .where = where, .what = what, .fix = fix});
}

// The template named "default" in a list of named templates.
std::string find_default(const Json& list, const std::string& path) {
  for (const Json& entry : list) {
    if (entry.is_object() && entry.value("name", Json()) == "default" &&
        entry.value("template", Json()).is_string()) {
      return entry["template"].get<std::string>();
    }
  }
  fail(path + ": chat_template", "no chat template has the name default",
       fmt::format("{} templates", list.size()),
       "name one of them default, or provide a single template");
}

std::optional<Source> read_template_key(const std::string& path) {
  if (!path_exists(path)) return std::nullopt;
  const Json config = read_json_file(path);
  if (!config.is_object()) {
    fail(path, fmt::format("{} is not a JSON object", path), config.type_name(),
         "use the file from the original checkpoint");
  }
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) return std::nullopt;
  if (found->is_array()) return Source{path, find_default(*found, path)};
  if (!found->is_string()) {
    fail(path + ": chat_template", "the chat template is not a string", found->type_name(),
         "write the template as one string");
  }
  return Source{path, found->get<std::string>()};
}

std::vector<Source> find_sources(const std::string& model_dir) {
  std::vector<Source> sources;
  const auto add = [&](std::optional<Source> source) {
    if (source.has_value()) sources.push_back(std::move(*source));
  };
  add(read_template_key(model_dir + "/processor_config.json"));
  add(read_template_key(model_dir + "/chat_template.json"));
  const std::string jinja_path = model_dir + "/chat_template.jinja";
  if (path_exists(jinja_path)) sources.push_back({jinja_path, read_file(jinja_path)});
  add(read_template_key(model_dir + "/tokenizer_config.json"));
  return sources;
}

// Jinja removes one newline at the end.
std::string_view strip_last_newline(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

// Special tokens such as eos_token, which transformers passes to every template by name.
std::vector<std::pair<std::string, std::string>> read_special_tokens(const std::string& model_dir) {
  std::vector<std::pair<std::string, std::string>> tokens;
  const std::string path = model_dir + "/tokenizer_config.json";
  if (!path_exists(path)) return tokens;
  const Json config = read_json_file(path);
  if (!config.is_object()) return tokens;
  for (const char* name : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                           "cls_token", "mask_token"}) {
    Json value = config.value(name, Json());
    if (value.is_object()) value = value.value("content", Json());
    if (value.is_string()) tokens.emplace_back(name, value.get<std::string>());
  }
  return tokens;
}

void check_messages(const Json& messages) {
  const char* fix = "pass a list of {\"role\": …, \"content\": string or list of parts}";
  if (!messages.is_array() || messages.empty()) {
    fail("messages", "the messages are not a list",
         messages.is_array() ? "an empty list" : messages.type_name(), fix);
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string where = fmt::format("messages[{}]", i);
    const Json& message = messages[i];
    if (!message.is_object()) fail(where, "a message is not an object", message.type_name(), fix);
    if (!message.value("role", Json()).is_string())
      fail(where, "a message has no role", "role must be a string", fix);
    const Json content = message.value("content", Json());
    if (!content.is_null() && !content.is_string() && !content.is_array()) {
      fail(where, "the content of a message is neither a string nor a list of parts",
           content.type_name(), fix);
    }
    for (size_t p = 0; content.is_array() && p < content.size(); ++p) {
      if (!content[p].is_object()) {
        fail(fmt::format("{}.content[{}]", where, p), "a part of a message is not an object",
             content[p].type_name(), fix);
      }
    }
  }
}

}  // namespace

ChatTemplate::ChatTemplate() = default;
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

ChatTemplate ChatTemplate::load(const std::string& model_dir) {
  const std::vector<Source> sources = find_sources(model_dir);
  if (sources.empty()) {
    fail(model_dir, "the model directory has no chat template",
         "looked in processor_config.json, chat_template.json, chat_template.jinja, "
         "tokenizer_config.json",
         "copy chat_template.json from the original checkpoint");
  }
  ChatTemplate chat = from_text(sources.front().text, sources.front().path);
  chat.special_tokens_ = read_special_tokens(model_dir);
  for (size_t i = 1; i < sources.size(); ++i) {
    if (strip_last_newline(sources[i].text) == strip_last_newline(sources.front().text)) continue;
    chat.warnings_.push_back(
        fmt::format("{} and {} have different chat templates; the first is used",
                    sources.front().path, sources[i].path));
  }
  return chat;
}

ChatTemplate ChatTemplate::from_text(const std::string& source, const std::string& where) {
  ChatTemplate chat;
  chat.where_ = where;
  chat.source_ = source;
  chat.template_ = std::make_unique<JinjaTemplate>(source, where);
  return chat;
}

std::string ChatTemplate::render(const Json& messages, bool add_generation_prompt) const {
  return render(messages, add_generation_prompt, Json());
}

std::string ChatTemplate::render(const Json& messages, bool add_generation_prompt,
                                 const Json& extra) const {
  check_messages(messages);
  REMATCH_CHECK(extra.is_null() || extra.is_object(), extra.type_name());
  Json variables = Json::object();
  for (const auto& [name, content] : special_tokens_) variables[name] = content;
  // transformers always defines these two variables.
  variables["tools"] = nullptr;
  variables["documents"] = nullptr;
  for (const auto& member : extra.items()) variables[member.key()] = member.value();
  variables["messages"] = messages;
  variables["add_generation_prompt"] = add_generation_prompt;
  return template_->render(variables);
}

}  // namespace rematch
