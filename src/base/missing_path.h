#pragma once
#include <string>

#include "base/error.h"

namespace rematch {

/// The error of a path that leads nowhere, in one form and with one exit code for every command
/// (environment, BEHAVIOUR 18).
/// @param thing  what the path should lead to, e.g. "model"
/// @param path  as the user gave it
/// Advice in place of `fix`, where windows_path_advice() has some.
UserError missing_path(const std::string& thing, const std::string& path, const std::string& fix);

/// Advice on a path of Windows that leads nowhere; "" for other paths.
std::string windows_path_advice(const std::string& path);

}  // namespace rematch
