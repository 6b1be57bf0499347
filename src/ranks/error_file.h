#pragma once
#include <string>

namespace rematch {

/// Tells torchrun why this process ends, in the file that it names in TORCHELASTIC_ERROR_FILE; it
/// shows the earliest of all ranks as the root cause. Does nothing without the variable, and
/// nothing when the file cannot be written: the error itself is told elsewhere.
/// @param text  the problem's lines; the first is the headline
void write_error_file(const std::string& text);

}  // namespace rematch
