#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

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

/// Darknet's lists of a directory without YAML (train.txt, valid.txt, …): the split of each image,
/// with normal paths. The file .data of Darknet says which list is that of validation. Empty without
/// lists.
/// @param pictures  directory of the images
std::map<std::filesystem::path, std::string> read_darknet_lists(
    const std::filesystem::path& root, const std::filesystem::path& pictures);

}  // namespace rematch
