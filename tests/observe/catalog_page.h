#pragma once
#include <string>

namespace rematch::test {

/// The table of metrics as docs/metrics.md.
std::string metrics_markdown();

}  // namespace rematch::test
