#include "model/text/stop_ids.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace rematch {
namespace {

[[noreturn]] void refuse(const Json& value, const std::string& path, std::string error) {
  throw data_error(
      {.error = std::move(error),
       .where = path,
       .what = "eos_token_id: " +
               value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 80),
       .fix =
           "write the id of a token of tokenizer.json or a list of such ids, or remove the key"});
}

// Adds eos_token_id of an object; null or absent: none.
void add_eos(const Json& holder, const std::string& path, const Tokenizer& tokenizer,
             std::set<TokenId>& ids) {
  const auto found = holder.find("eos_token_id");
  if (found == holder.end() || found->is_null()) return;
  const Json& eos = *found;
  if (eos.is_array() && eos.empty()) refuse(eos, path, "no token ends an answer");
  for (const Json& item : eos.is_array() ? eos : Json::array({eos})) {
    if (!item.is_number_unsigned()) refuse(eos, path, "eos_token_id is not a token id");
    const auto id = item.get<uint64_t>();
    if (id >= static_cast<uint64_t>(tokenizer.num_ids()) ||
        !tokenizer.has_token(static_cast<TokenId>(id)))
      refuse(eos, path, "the tokenizer has no token of the id that ends answers");
    ids.insert(static_cast<TokenId>(id));
  }
}

Json read_object(const std::string& path) {
  Json value = read_json_file(path);
  if (!value.is_object()) {
    throw data_error({.error = "the file is not a JSON object",
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
  if (path_exists(generation)) {
    add_eos(read_object(generation), generation, tokenizer, ids);
  } else if (path_exists(config)) {
    const Json root = read_object(config);
    const auto text = root.find("text_config");  // older files have its keys at the top level
    if (text == root.end() || text->is_object())
      add_eos(text == root.end() ? root : *text, config, tokenizer, ids);
  }
  for (const char* content : {"<|im_end|>", "<|endoftext|>"}) {
    if (const auto id = tokenizer.token_id(content)) ids.insert(*id);
  }
  return {ids.begin(), ids.end()};
}

}  // namespace rematch
