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

/// Advice on a path of Windows that leads nowhere; "" for other paths.
std::string windows_path_advice(const std::string& path);

}  // namespace rematch
