#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/strings.h"

namespace rematch {

/// Texts that image files of the same picture share: equal bytes, copies that were compressed or
/// scaled again, and Roboflow's versions of one file (NAME.rf.HASH.jpg). Copies of copies share a
/// text with the one between.
/// @param hashes  content hash of each file, by path
/// @return by path; the file's own hash is the first text
std::map<std::string, Strings> picture_texts(const std::map<std::string, std::string>& hashes);

/// The name that Roboflow's versions of a file share: "photo_jpg" of "photo_jpg.rf.0a1b….jpg";
/// empty for other names.
std::string roboflow_source(const std::string& path);

}  // namespace rematch
