#pragma once
#include <string>

#include "base/json.h"

namespace rematch {

/// The report's page (report.html with report.css and its scripts) around the data that its script
/// shows: one file that loads nothing. Strings in the data cannot end the element that holds them.
std::string fill_page(const Json& data);

}  // namespace rematch
