#pragma once
#include <string>

namespace rematch {

/// @throws UserError (config) for a directory in place of a JSONL of records: names the files in
/// it, or the command that imports it
void require_records_file(const std::string& path);

}  // namespace rematch
