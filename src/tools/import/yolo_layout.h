#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tools/import/foreign.h"
#include "tools/import/yolo_lists.h"

namespace rematch {

/// An image of a YOLO data set and its label file.
struct YoloPair {
  std::filesystem::path image;
  std::filesystem::path labels;  ///< empty: there is none
};

/// Throws the UserError (data) of an unreadable YOLO data set.
[[noreturn]] void refuse_yolo(const std::string& where, const std::string& what,
                              const std::string& fix);

/// The label file of an image. As in Ultralytics, the last folder `images` becomes `labels`, in any
/// letter case; else a text file next to the image. Empty if there is none.
std::filesystem::path find_label_file(const std::filesystem::path& image);

/// Expected path of the label file of an image, for messages.
std::filesystem::path expected_label_file(const std::filesystem::path& image);

/// Finds images and label files of a directory without YAML by their names, with splits from
/// lists or from their folders.
/// @param options  `images_dir` holds the images if it is set; `split` names the only split
/// @throws UserError (data) without label files
std::map<std::string, std::vector<YoloPair>> find_yolo_pairs(const std::filesystem::path& root,
                                                             const DarknetLists& lists,
                                                             const ImportOptions& options);

/// The classes.txt (obj.names, …) of a directory without YAML; empty if there is none.
std::string find_names_file(const std::filesystem::path& root);

}  // namespace rematch
