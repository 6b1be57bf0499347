#pragma once
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tools/import/ledger.h"

namespace rematch {

/// Resolves a path of a YOLO data set. As in Ultralytics, "../train/images" may be next to the YAML,
/// as in exports of Roboflow. A path of another machine is looked for by its last parts, and so is
/// every image of a list.
/// @param root      of the images
/// @param place     another folder to look in: that of the YAML
/// @param is_image  of a list
std::filesystem::path resolve_yolo_path(const std::filesystem::path& root,
                                        const std::filesystem::path& place, std::string entry,
                                        bool is_image);

/// The images of a split, sorted: all below a directory, or those of a list, one path a line.
std::vector<std::filesystem::path> list_split_images(const std::filesystem::path& path,
                                                     const std::filesystem::path& root);

/// Darknet's lists of a directory without YAML, in it or in its folder data: train.txt, val.txt or
/// valid.txt, test.txt, and those that a .data file names (train = …, valid = …).
class DarknetLists {
 public:
  /// Split of images that no list names, where there are lists.
  static constexpr const char* kUnlisted = "";

  DarknetLists() = default;  ///< no lists
  /// @param pictures  directory of the images
  /// @param ledger    counts entries without an image, and images of two lists
  DarknetLists(const std::filesystem::path& root, const std::filesystem::path& pictures,
               Ledger& ledger);

  /// @param of_folder  the split that the image's folder names, or "": counts for an image without
  ///                   a list unless this split has one
  std::string split_of(const std::filesystem::path& image, const std::string& of_folder) const;

 private:
  void add(const std::filesystem::path& image, const std::string& split, Ledger& ledger);

  std::map<std::filesystem::path, std::string> splits_;  ///< of images with real folders
  std::set<std::string> listed_;                         ///< splits that have a list
};

}  // namespace rematch
