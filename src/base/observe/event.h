#pragma once
#include <string>

namespace rematch {

/// Tells the Python package where a command wrote: the line {"event": NAME, "path": PATH} on
/// standard error, if the environment variable REMATCH_EVENTS is 1. Texts for people escape what a
/// terminal must not get, so no program can read a path out of them. Call it on the first rank.
void send_event(const std::string& name, const std::string& path);

}  // namespace rematch
