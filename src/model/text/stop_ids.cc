#include "model/text/stop_ids.h"

#include <fmt/core.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/json.h"

namespace rematch {
namespace {

void add_id(const Json& value, const std::string& path, std::set<TokenId>& ids) {
  const bool fits = value.is_number_unsigned() &&
                    value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int>::max());
  if (!fits) {
    throw UserError(
        ErrorKind::kData,
        {.error = "eos_token_id is not a token id",
         .where = path,
         .what = value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 80),
         .fix = "write a token id or a list of token ids"});
  }
  ids.insert(static_cast<int>(value.get<uint64_t>()));
}

// Adds eos_token_id of an object; null or absent: none.
void add_eos(const Json& holder, const std::string& path, std::set<TokenId>& ids) {
  const auto found = holder.find("eos_token_id");
  if (found == holder.end() || found->is_null()) return;
  if (!found->is_array()) return add_id(*found, path, ids);
  for (const Json& item : *found) add_id(item, path, ids);
}

Json read_object(const std::string& path) {
  Json value = read_json_file(path);
  if (!value.is_object()) {
    throw UserError(ErrorKind::kData, {.error = "the file is not a JSON object",
                                       .where = path,
                                       .what = value.type_name(),
                                       .fix = "restore the file from the checkpoint"});
  }
  return value;
}

}  // namespace

std::vector<TokenId> read_stop_ids(const std::string& model_dir, const Tokenizer& tokenizer) {
  std::set<TokenId> ids;
  const std::string generation = model_dir + "/generation_config.json";
  const std::string config = model_dir + "/config.json";
  std::error_code ignored;
  if (std::filesystem::exists(generation, ignored)) {
    add_eos(read_object(generation), generation, ids);
  } else if (std::filesystem::exists(config, ignored)) {
    const Json root = read_object(config);
    const auto text = root.find("text_config");  // older files have its keys at the top level
    if (text == root.end() || text->is_object())
      add_eos(text == root.end() ? root : *text, config, ids);
  }
  for (const char* content : {"<|im_end|>", "<|endoftext|>"}) {
    if (const auto id = tokenizer.token_id(content)) ids.insert(*id);
  }
  return {ids.begin(), ids.end()};
}

}  // namespace rematch
