#pragma once
#include <map>
#include <string>
#include <string_view>

namespace rematch {

/// Reads `model.safetensors.index.json`: tensor → file name of its shard. Torch-free, so that
/// sanitizers and the fuzzer reach it.
/// @param where  its path, for errors
/// @throws UserError (data) for invalid JSON, without a weight_map, and for a name that could lead
/// out of the directory
std::map<std::string, std::string> parse_shard_index(std::string_view text,
                                                     const std::string& where);

}  // namespace rematch
