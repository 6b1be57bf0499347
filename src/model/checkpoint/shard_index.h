#pragma once
#include <map>
#include <string>
#include <string_view>

namespace rematch {

/// Reads `model.safetensors.index.json`: tensor → file name of its shard.
/// @param where  its path, for errors
/// @throws UserError (data) for invalid JSON, a missing weight_map, and file names that are paths
std::map<std::string, std::string> parse_shard_index(std::string_view text,
                                                     const std::string& where);

}  // namespace rematch
