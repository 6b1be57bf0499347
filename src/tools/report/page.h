#pragma once
#include <string>

#include "base/json.h"

namespace rematch {

/// Builds the report's page from report.html, report.css, the scripts and the data, as one file
/// that loads nothing. Strings in the data cannot close the script element.
std::string fill_page(const Json& data);

}  // namespace rematch
