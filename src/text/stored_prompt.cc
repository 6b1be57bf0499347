#include "text/stored_prompt.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json_fields.h"
#include "text/prompt.h"

namespace rematch {

void write_stored_prompt(const std::string& directory, const PromptEncoder& prompts,
                         int max_new_tokens) {
  Json json;
  json["system"] = prompts.system_prompt();
  json["user"] = prompts.user_prompt();
  json["max_new_tokens"] = max_new_tokens;
  write_file_atomic(join_path(directory, kStoredPromptFile), python_json(json, 2) + "\n");
}

std::optional<StoredPrompt> read_stored_prompt(const std::string& directory) {
  const std::string path = join_path(directory, kStoredPromptFile);
  if (!std::filesystem::exists(path)) return std::nullopt;
  const JsonOrigin origin{.path = path,
                          .error = "the prompt of this checkpoint cannot be read",
                          .fix = "restore the file, or remove it and give --system and --user"};
  const Json json = parse_document(read_file(path), origin);
  JsonFields fields(json, origin);
  StoredPrompt prompt;
  prompt.texts.system_prompt = fields.text("system");
  prompt.texts.user_prompt = fields.text("user");
  prompt.max_new_tokens = fields.integer_or("max_new_tokens", prompt.max_new_tokens, 1);
  fields.finish();
  return prompt;
}

}  // namespace rematch
