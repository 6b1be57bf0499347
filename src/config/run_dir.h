#pragma once
#include <optional>
#include <string>

namespace rematch {

/// Where a run writes: output_dir[/vN-YYYYMMDD-HHMMSS][/run_name]. N is one more than the largest there, 0 for the first; local time.
/// Creates nothing.
std::string run_directory(const std::string& output_dir, bool add_version, const std::optional<std::string>& run_name);

}  // namespace rematch
