#pragma once
#include <string>

namespace rematch::test {

/// docs/config.md, from the table of keys.
std::string config_markdown();

}  // namespace rematch::test
