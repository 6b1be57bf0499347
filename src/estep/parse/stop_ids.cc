#include "estep/parse/stop_ids.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace rematch {
namespace {

void add_id(const Json& value, const std::string& path, std::set<int>& ids) {
  const bool is_id = value.is_number_integer() && value.get<double>() >= 0 && value.get<double>() <= 2147483647.0;
  if (!is_id) {
    throw UserError(ErrorKind::kData, {.error = "eos_token_id is not a token id", .where = path, .what = value.dump(),
                                       .fix = "write an integer ≥ 0 or a list of them"});
  }
  ids.insert(value.get<int>());
}

}  // namespace

std::vector<int> stop_token_ids(const Tokenizer& tokenizer, const std::string& model_dir) {
  std::set<int> ids;
  for (const char* content : {"<|im_end|>", "<|endoftext|>"}) {
    if (const auto id = tokenizer.token_id(content)) ids.insert(*id);
  }
  const std::string path = join_path(model_dir, "generation_config.json");
  if (std::filesystem::exists(path)) {
    const Json config = read_json_file(path);
    const auto eos = config.is_object() ? config.find("eos_token_id") : config.end();
    if (eos != config.end() && eos->is_array()) {
      for (const Json& item : *eos) add_id(item, path, ids);
    } else if (eos != config.end() && !eos->is_null()) {
      add_id(*eos, path, ids);
    }
  }
  return {ids.begin(), ids.end()};
}

}  // namespace rematch
