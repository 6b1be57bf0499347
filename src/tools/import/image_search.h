#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/import/foreign.h"

// The search for image files that all importers share (BEHAVIOUR 19.11).
namespace rematch {

/// The image files below a directory, by their name in lower case.
class ImageIndex {
 public:
  explicit ImageIndex(const std::filesystem::path& root);

  /// The files that share most of their last folders with `name`, also with an ending of images
  /// appended where it has none. A folder that names a split has no file of another split.
  /// @param name  a relative path with slashes
  std::vector<std::string> find(const std::string& name, const std::string& split) const;
  /// A file whose name resembles `name`; empty for none.
  std::string nearest(const std::string& name) const;

 private:
  bool is_of_other_split(const std::filesystem::path& path, const std::string& split) const;

  std::filesystem::path root_;
  std::unordered_map<std::string, std::vector<std::filesystem::path>> by_name_;
};

/// Finds image files by the names that annotations give: as written or decoded (image_name_forms)
/// in the folders near the annotations, else anywhere below by the last parts of the name.
class ImageSearch {
 public:
  /// @param images_dir  where images lie; empty: near the annotations
  explicit ImageSearch(std::string images_dir) : images_dir_(std::move(images_dir)) {}

  struct Found {
    std::vector<std::string> paths = {};  ///< of several, each may be meant
    bool is_loose = true;                 ///< only a part of the name matches
    std::string other = {};  ///< another image, which has the name of the annotation file
  };
  Found find(const ForeignImage& image);

  /// For messages: "looked for "a.png" in DIR; the nearest file is DIR/A.png".
  std::string explain(const ForeignImage& image);

 private:
  const std::vector<std::filesystem::path>& folders_for(const std::string& directory);
  /// The existing files of a name in the first folder that has one.
  std::vector<std::string> look_up(const std::string& directory, const std::string& name);
  const ImageIndex& index_of(const std::filesystem::path& root);
  std::filesystem::path root_for(const std::string& directory) const;

  std::string images_dir_;
  std::unordered_map<std::string, std::vector<std::filesystem::path>> folders_;
  std::map<std::filesystem::path, ImageIndex> indexes_;
};

/// Fills in the paths of all images. An image that is not found keeps an empty path; one whose file
/// is in doubt gets the reason.
void find_images(ForeignSet& set, ImageSearch& search);

/// The names that a name in an annotation may stand for, most literal first: with slashes, decoded,
/// without scheme, host and `?d=`.
std::vector<std::string> image_name_forms(const std::string& name);

}  // namespace rematch
