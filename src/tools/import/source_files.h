#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tools/import/foreign.h"

// The beginning and the end that all readers share: which files a data set has, and what is said if
// it has no records.
namespace rematch {

/// Names, in lower case, of folders that hold images or annotations.
inline constexpr const char* kImageFolders[] = {"images", "jpegimages", "image",   "imgs",
                                                "img",    "photos",     "pictures"};
inline constexpr const char* kAnnotationFolders[] = {"annotations", "annotation", "annots", "annot",
                                                     "labels",      "label",      "xml",    "xmls",
                                                     "anno",        "annos",      "bbox",   "txt"};

/// Refuses a file or directory.
/// @param command  that read it, "from-coco"
/// @param fix  empty: names all commands, and how to convert other forms
/// @throws UserError (data)
[[noreturn]] void refuse_source(const char* command, const std::string& where,
                                const std::string& what, const std::string& fix = "");

/// The text of a file without its byte order mark.
/// @throws UserError (data) for UTF-16
std::string_view text_of(std::string_view bytes, const std::string& path);

/// The text of a file that must be UTF-8, without its byte order mark.
/// @throws UserError (data) for another encoding; (environment) if the file cannot be read
std::string read_utf8(const std::string& path);

/// Reads the lines of a text file without its byte order mark. A line may end in "\r".
/// @throws UserError as text_of; (environment) if the file cannot be read
std::vector<std::string> read_lines(const std::string& path);

/// Annotation files by split.
using SplitFiles = std::map<std::string, std::vector<std::filesystem::path>>;

/// The folder of `directory` that has one of these names in any letter case; the first name counts
/// most; empty if there is none.
std::filesystem::path find_folder(const std::filesystem::path& directory,
                                  std::span<const char* const> names);

/// The split that a folder between the root and a file names, the deepest if several do; "" for
/// none.
std::string find_split_folder(const std::filesystem::path& file, const std::filesystem::path& root);

/// All files below a directory with an ending, by the split that their folders name, else `wanted`,
/// else that of the directory's name, else "train".
/// @throws UserError (data) for a file, and without such files; (environment) for a missing path
SplitFiles find_annotations(const std::string& directory, const char* command, const char* ending,
                            const std::string& wanted);

/// @throws UserError (configuration) if two files are the same split and `split` is not set
void check_one_file_per_split(const std::vector<std::string>& paths, const ImportOptions& options);

/// The files of sources that are files with one split each, or directories of these.
/// @param fits  of the files of a directory
/// @throws UserError (data) as find_annotations; (configuration) if two files are the same split
std::vector<std::string> find_split_files(
    const std::vector<std::string>& sources, const char* command, const char* ending,
    const std::function<bool(const std::filesystem::path&)>& fits, const ImportOptions& options);

/// The image of an annotation file for one image, still without objects.
ForeignImage image_of_file(const std::filesystem::path& annotation);
/// An image that a file names, still without objects.
ForeignImage image_in(const std::string& file, const std::string& name, const std::string& where);
/// The same of a record; `width` and `height` are its size.
ForeignImage image_of_record(const Json& record, const std::string& name, const std::string& file,
                             const std::string& where);

/// @throws UserError (data) with the losses, if no split has an image
void require_images(const ForeignSet& set, const char* command, const char* fix);

}  // namespace rematch
