#pragma once
#include <string_view>

namespace rematch {

/// Advice for a field that other programs write into a record, or nullptr for one that is not
/// known.
const char* advice_for_record_key(std::string_view key);
/// The same for a field of an object.
const char* advice_for_object_key(std::string_view key);

}  // namespace rematch
