#pragma once
#include <string_view>

namespace rematch {

/// Advice for a record field of another program; nullptr if the field is unknown.
const char* advice_for_record_key(std::string_view key);
/// Advice for an object field of another program; nullptr if the field is unknown.
const char* advice_for_object_key(std::string_view key);

}  // namespace rematch
