#pragma once
#include <string>

namespace rematch {

/// Refuses to write over a file that is read: the same file under any name, also by a link. A
/// missing `out` is none.
/// @throws UserError (configuration)
void keep_source(const std::string& source, const std::string& out);

}  // namespace rematch
