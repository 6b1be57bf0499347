#pragma once
#include <fmt/core.h>

#include <string>

#include "base/error.h"

namespace rematch {

/// Rejects the value of an option.
/// @param key  of the configuration.
/// @param legal  the legal values
/// @throws UserError (config)
template <typename Value>
[[noreturn]] void refuse_value(const std::string& key, const Value& value, const char* legal) {
  throw config_error({.error = fmt::format("{} is out of range", key),
                      .where = key,
                      .what = fmt::format("{}", value),
                      .fix = fmt::format("use {}", legal)});
}

}  // namespace rematch
