#pragma once
#include <string>

namespace rematch {

/// Reports to torchrun why this process ends, in the file named by TORCHELASTIC_ERROR_FILE;
/// torchrun shows the earliest report of all ranks as the root cause. Does nothing without the
/// variable, or if the file cannot be written: the error is also reported elsewhere.
/// @param text  the problem's lines; the first is the headline
void write_error_file(const std::string& text);

}  // namespace rematch
