#pragma once
#include <unordered_map>

#include "tools/import/source_files.h"

// The search for image files that all importers share.
namespace rematch {

/// Finds image files by the names that annotations give: as written or decoded (image_name_forms)
/// in the folders near the annotations, else anywhere below by the last parts of the name.
class ImageSearch {
 public:
  /// @param images_dir  where images lie; empty: near the annotations
  explicit ImageSearch(std::string images_dir) : images_dir_(std::move(images_dir)) {}

  struct Found {
    Strings paths = {};      ///< of several, each may be meant
    bool is_loose = true;    ///< only a part of the name matches
    std::string other = {};  ///< another image: one is named, one has the annotation file's name
  };
  Found find(const ForeignImage& image);

  /// For messages: "looked for "a.png" in DIR".
  std::string explain(const ForeignImage& image) const;

 private:
  const Paths& folders_for(const std::string& directory);
  /// The files below a directory that share most of their last folders with `name`, also with an
  /// ending of images appended where it has none. A folder that names a split has no file of
  /// another split.
  /// @param name  a relative path with slashes
  Strings find_below(const std::filesystem::path& root, const std::string& name,
                     const std::string& split);
  /// The image files below a directory, by their name in lower case.
  using Index = std::unordered_map<std::string, Paths>;
  const Index& index_of(const std::filesystem::path& root);
  std::filesystem::path root_for(const std::string& directory) const;

  std::string images_dir_;
  std::unordered_map<std::string, Paths> folders_;
  std::map<std::filesystem::path, Index> indexes_;
};

/// The names that a name in an annotation may stand for, most literal first: with slashes, decoded,
/// without scheme, host and `?d=`.
Strings image_name_forms(const std::string& name);

}  // namespace rematch
