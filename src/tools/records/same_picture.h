#pragma once
#include <string>
#include <vector>

namespace rematch {

/// Groups image files that show the same picture: equal bytes, copies that were compressed or
/// scaled again, and Roboflow's versions of one file (NAME.rf.HASH.jpg).
/// @param paths   different paths
/// @param hashes  content hash of each file
/// @return for each file the texts that it shares with the others of its group, its own hash first
std::vector<std::vector<std::string>> picture_groups(const std::vector<std::string>& paths,
                                                     const std::vector<std::string>& hashes);

/// The name that Roboflow's versions of a file share: "photo_jpg" of "photo_jpg.rf.0a1b….jpg";
/// empty for other names.
std::string roboflow_source(const std::string& path);

}  // namespace rematch
