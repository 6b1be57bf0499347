#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "tools/import/foreign.h"

// The beginning and the end that all readers share: which files a data set has, and what is said if
// it has none, or no records.
namespace rematch {

/// A format whose annotations lie in a directory.
struct DirectoryFormat {
  const char* command;             ///< "from-coco"
  const char* ending;              ///< ".json"
  const char *error, *what, *fix;  ///< for a directory without such files
};

/// Annotation files by split.
using SplitFiles = std::map<std::string, std::vector<std::filesystem::path>>;

/// Lists the annotations of a directory by split. All files in `directory` are one split: `wanted`,
/// else the split in the directory's name, else "train". If there are none, the folders train, val
/// (or valid) and test are the splits.
/// @param ending  e.g. ".xml"
/// @throws UserError (data) if two folders are one split, or files are in both places
SplitFiles list_annotations(const std::filesystem::path& directory, const std::string& ending,
                            const std::string& wanted);

/// The same of a directory, or of its folder of annotations.
/// @throws UserError (data) if there are none
SplitFiles find_annotations(const std::string& directory, const DirectoryFormat& format,
                            const std::string& wanted);

/// @throws UserError (configuration) if two files are the same split and `split` is not set
void check_one_file_per_split(const std::vector<std::string>& paths, const ImportOptions& options);

/// The files of sources that are files with one split each, or directories of these.
/// @throws UserError (data) as find_annotations; (configuration) if two files are the same split
std::vector<std::string> find_split_files(const std::vector<std::string>& sources,
                                          const DirectoryFormat& format,
                                          const ImportOptions& options);

/// The split that a folder between the root and a file names, the deepest if several do; "" for none.
std::string find_split_folder(const std::filesystem::path& file, const std::filesystem::path& root);

/// Counts annotation files in folders below those of the files that are read.
/// @param mark  a text that such a file has
void lose_deeper_files(const SplitFiles& read, const char* mark, Ledger& ledger);

/// The image of an annotation file for one image, still without objects.
ForeignImage image_of_file(const std::filesystem::path& annotation);
/// An image with a record in a file, still without objects; `width` and `height` are its size.
ForeignImage image_of_record(const Json& record, const std::string& name, const std::string& file,
                             const std::string& where);

/// @throws UserError (data) with the losses, if no split has an image
void require_images(const ForeignSet& set, const char* error, const char* fix);

}  // namespace rematch
