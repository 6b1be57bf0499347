#pragma once
#include <string>
#include <vector>

#include "base/error.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the name of the library
class App;
}

namespace rematch {

/// The Problem of a command line that the program cannot read, with what was probably meant: the
/// command, option or `--set` for words of other trainers.
/// @param reason  the library's text.
/// @param has_extras  arguments were left over
Problem usage_problem(const CLI::App& app, const std::string& reason, bool has_extras,
                      const Strings& arguments);

}  // namespace rematch
