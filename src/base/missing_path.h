#pragma once
#include <string>

#include "base/error.h"

namespace rematch {

/// The error of a path that leads nowhere, in one form and with one exit code for every command
/// (environment, BEHAVIOUR 18).
/// windows_path_advice() replaces `fix` where it has advice.
/// @param thing  what the path should lead to, e.g. "model"
/// @param path  as the user gave it
UserError missing_path(const std::string& thing, const std::string& path, const std::string& fix);

/// "; there is data/test.jsonl" for a path that leads nowhere: up to three names near it, else with
/// its ending, in the nearest directory that exists and has at most 500 entries; else "". Of a link
/// it names the target.
std::string existing_names(const std::string& path);

/// Advice on a path of Windows that leads nowhere; "" for other paths.
std::string windows_path_advice(const std::string& path);

}  // namespace rematch
