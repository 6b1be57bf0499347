#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/import/foreign.h"

// The search for image files that all importers share (BEHAVIOUR 19.11).
namespace rematch {

/// The image files below a directory, by their lower-case name. Directories are visited once; the
/// first 200,000 images count.
class ImageIndex {
 public:
  explicit ImageIndex(const std::filesystem::path& root);

  /// The files that share most of their last folders with `name`, also with an ending of images
  /// appended where it has none. A folder that names a split has no file of another split.
  /// @param name  a relative path with slashes
  std::vector<std::filesystem::path> find(const std::string& name, const std::string& split) const;
  /// A file whose name resembles `name`; empty for none.
  std::filesystem::path nearest(const std::string& name) const;

 private:
  bool is_of_other_split(const std::filesystem::path& path, const std::string& split) const;

  std::filesystem::path root_;
  std::unordered_map<std::string, std::vector<std::filesystem::path>> by_name_;
};

/// Finds image files by the names that annotations give: as written, with backslashes, `%20`,
/// `file://`, addresses and `?d=` decoded, without their first folders, and near the annotations.
class ImageSearch {
 public:
  /// @param images_dir  where images lie; empty: near the annotations
  explicit ImageSearch(std::string images_dir) : images_dir_(std::move(images_dir)) {}

  struct Found {
    std::vector<std::string> paths = {};  ///< of several, each has the name and another ending
    bool is_loose = true;                 ///< only a part of the name matches
  };
  Found find(const ForeignImage& image);

  /// For messages: "looked for "a.png" in DIR; the nearest file is DIR/A.png".
  std::string explain(const ForeignImage& image);
  /// The directory to pass as --images, if the image lies near the searched ones; else empty.
  std::string suggest(const ForeignImage& image);

 private:
  const std::vector<std::filesystem::path>& folders_for(const std::string& directory);
  const ImageIndex& index_of(const std::filesystem::path& root);
  std::filesystem::path root_for(const std::string& directory) const;

  std::string images_dir_;
  std::unordered_map<std::string, std::vector<std::filesystem::path>> folders_;
  std::map<std::filesystem::path, ImageIndex> indexes_;
};

/// Fills in the paths of all images. An image that is not found, or whose file several names may
/// mean, keeps an empty path or gets the reason in `lost`.
void find_images(ForeignSet& set, ImageSearch& search);

/// The names that a name in an annotation may stand for, most literal first: with slashes, decoded,
/// without scheme, host and `?d=`.
std::vector<std::string> image_name_forms(const std::string& name);

}  // namespace rematch
