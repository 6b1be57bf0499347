#include "model/checkpoint/shard_index.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace rematch {
namespace {

[[noreturn]] void refuse(const std::string& where, std::string error, std::string what) {
  throw data_error({.error = std::move(error),
                    .where = where,
                    .what = std::move(what),
                    .fix = "copy or download the checkpoint again"});
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

}  // namespace

std::map<std::string, std::string> parse_shard_index(std::string_view text,
                                                     const std::string& where) {
  const Json root = parse_json(text, where);
  const auto found = root.is_object() ? root.find("weight_map") : root.end();
  if (!root.is_object() || found == root.end() || !found->is_object())
    refuse(where, "a shard index has no weight_map", root.type_name());
  std::map<std::string, std::string> weight_map;
  for (const auto& member : found->items()) {
    if (!member.value().is_string())
      refuse(where, "a weight_map entry is not a file name", member.key());
    const std::string file = member.value().get<std::string>();
    if (!is_plain_name(file))
      refuse(where, "a weight_map entry is not a plain file name", python_json_string(file));
    weight_map[member.key()] = file;
  }
  return weight_map;
}

}  // namespace rematch
