#pragma once
#include <fmt/core.h>

#include <iostream>
#include <string>
#include <utility>

#include "base/terminal_text.h"

namespace rematch {

/// Gives std::cout a buffer that remembers the first failure of a write; call it before anything is
/// printed. Descriptors 0 to 2 that the process was started without are filled with ones that fail,
/// so that no file of ours becomes "standard output".
void watch_standard_output();

/// For commands with files as their result: a closed pipe is an error of the write (exit 4),
/// not the end of the process. Commands that print leave SIGPIPE as it is, so that `rematch check …
/// | head` ends quietly.
void survive_closed_pipe();

/// For commands that write a file: if that is standard output, all else that they print goes to
/// standard error from now on.
/// @param out  path of the file
void reserve_standard_output(const std::string& out);

/// Writes what is left in the buffer. When any of the output could not be written, says so on
/// standard error.
/// @return the exit code of the process: 4 instead of 0 for lost output
int finish_standard_output(int exit_code);

/// Prints a text with arguments, as fmt::format() takes them; control characters in it are escaped.
template <typename... Values>
void print(fmt::format_string<Values...> text, Values&&... values) {
  std::cout << printable_lines(fmt::format(text, std::forward<Values>(values)...));
}

}  // namespace rematch
