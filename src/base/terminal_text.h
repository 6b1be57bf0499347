#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rematch {

/// Text of a user's file as a terminal may show it: control characters (U+0000..1F, 7F..9F) are
/// written `\x1b`, those that turn or break lines (U+202E, …) `\u202e`; all else stays. Printing
/// it twice changes nothing more.
std::string printable(std::string_view text);

/// The same for text of several lines, which keeps its line ends.
std::string printable_lines(std::string_view text);

/// `text`, cut between two characters to at most `columns`, the last of which is then "…".
std::string shorten(std::string_view text, size_t columns);

/// A label as a line of text shows it: printable, and cut to 60 columns.
std::string shown_label(std::string_view label);

/// The first `columns` columns of a text, control characters escaped.
std::string shown_start(std::string_view text, size_t columns);

/// A path as a POSIX shell takes it in a suggested command: as it is where that is safe, else
/// between single quotes.
std::string shell_word(const std::string& text);

/// Advice whose word FILE stands for a file that the writer of the advice does not know.
std::string with_file(std::string advice, const std::string& path);

/// Number of columns of UTF-8 text, one for each character.
size_t display_width(std::string_view text);

/// Text broken at blanks into lines of at most `columns`; all but the first begin with `indent`
/// blanks. Words and commands in backticks stay whole; lines of the text stay lines.
std::string wrapped(const std::string& text, size_t indent, size_t columns = 80);

/// "812 B", "14 KB", "1.4 MB".
std::string shown_bytes(int64_t bytes);

/// "1 image", "2 images".
/// @param many  "" adds an s to `one`
std::string counted(int64_t count, std::string_view one, std::string_view many = "");

}  // namespace rematch
