#include "model/text/stored_prompt.h"

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json_fields.h"

namespace rematch {

void write_stored_prompt(const std::string& directory, const StoredPrompt& prompt) {
  Json json;
  json["system"] = prompt.texts.system_prompt.value_or("");
  json["user"] = prompt.texts.user_prompt.value_or("");
  json["max_new_tokens"] = prompt.max_new_tokens;
  json["answer_format"] = prompt.answer_format;
  json["image_backend"] = name_of(prompt.image_backend);
  if (!prompt.template_variables.empty()) json["template_variables"] = prompt.template_variables;
  write_file_atomic(join_path(directory, kStoredPromptFile), python_json(json, 2) + "\n");
}

std::optional<StoredPrompt> read_stored_prompt(const std::string& directory) {
  const std::string path = join_path(directory, kStoredPromptFile);
  if (!path_exists(path)) return std::nullopt;
  const JsonOrigin origin{.path = path,
                          .error = "the prompt of this checkpoint cannot be read",
                          .fix = "restore the file, or remove it and give --system and --user"};
  const Json json = parse_document(read_file(path), origin);
  JsonFields fields(json, origin);
  StoredPrompt prompt;
  // Empty: the format has no system message.
  prompt.texts.system_prompt = fields.text("system");
  if (prompt.texts.system_prompt->empty()) prompt.texts.system_prompt.reset();
  prompt.texts.user_prompt = fields.text("user");
  prompt.max_new_tokens = fields.integer_or("max_new_tokens", prompt.max_new_tokens, 1, 1 << 24);
  prompt.answer_format = fields.text_or("answer_format", prompt.answer_format);
  const std::string backend = fields.text_or("image_backend", name_of(prompt.image_backend));
  const std::optional<ImageBackend> known = value_of<ImageBackend>(backend);
  if (!known) throw_json_error(origin, "image_backend", "\"" + backend + "\"");
  prompt.image_backend = *known;
  if (fields.has("template_variables")) {
    JsonFields variables = fields.object("template_variables");
    for (const auto& [name, value] : fields.at("template_variables").items()) {
      prompt.template_variables[name] = variables.boolean_or(name, false);
      if (prompt.template_variables[name])
        variables.fail(name, "prompts are only written with this variable turned off");
    }
  }
  fields.finish();
  return prompt;
}

}  // namespace rematch
