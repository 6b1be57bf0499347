#pragma once
#include <string>
#include <string_view>

namespace rematch {

/// The command that imports what a directory holds, such as "rematch data from-yolo DIR --out
/// data"; "" when its files are of no known format. Looks at names, and at the beginnings of JSON
/// and YAML files.
std::string import_command(const std::string& directory);

/// `fix`, or the command above when the directory is of another format than a reader's.
/// @param reader  e.g. "from-coco"
std::string import_fix(const std::string& directory, const char* reader, const std::string& fix);

/// Refuses what is not a directory, a file of another format with the command that reads it.
/// @throws UserError (data); (environment) for a path that leads nowhere
void require_directory(const std::string& path, std::string_view reader);

/// Refuses a file of another format than a reader's.
/// @param text  its content
/// @throws UserError (data) with the format's name and the command or export to use instead
void refuse_other_format(const std::string& path, std::string_view text, std::string_view reader,
                         const std::string& error);

}  // namespace rematch
