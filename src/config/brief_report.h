#pragma once
#include <string>

#include "config/config.h"

namespace rematch {

/// The files read and the values that are set or derived, with the place of each, in at most 80
/// columns and some 45 lines; values at their defaults are only counted.
std::string brief_text(const ConfigResult& result);

}  // namespace rematch
