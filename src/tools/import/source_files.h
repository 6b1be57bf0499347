#pragma once
#include <filesystem>
#include <span>
#include <string_view>

#include "tools/import/foreign.h"

// The parts that all readers share: which files a data set has, how an object is read, and what is
// said if there are no records.
namespace rematch {

/// Names, in lower case, of folders that hold images or annotations.
inline constexpr const char* kImageFolders[] = {"images", "jpegimages", "image",   "imgs",
                                                "img",    "photos",     "pictures"};
inline constexpr const char* kAnnotationFolders[] = {
    "annotations", "annotation", "annots", "annot", "labels", "label", "xml",
    "xmls",        "anno",       "annos",  "ann",   "bbox",   "txt"};

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

/// Reads the lines of a text file without its byte order mark, and without blanks around them.
/// @throws UserError as text_of; (environment) if the file cannot be read
Strings read_lines(const std::string& path);

/// A form of strangers' files.
struct SourceForm {
  const char* command;        ///< that reads it, "from-coco"
  const char* ending;         ///< of the names of its files, in lower case
  const char* fix = "";       ///< for files without a record; empty: as refuse_source()
  bool is_per_image = false;  ///< each file is about one image, and its name says no split
  bool (*fits)(const std::filesystem::path&) = nullptr;  ///< of the files of a directory
};

using Paths = std::vector<std::filesystem::path>;

/// Files by split.
using SplitFiles = std::map<std::string, Paths>;

/// Reads a file into the images of its split.
using FileReader =
    std::function<void(const std::string& path, ForeignSet& set, ForeignImages& images)>;

/// Reads the files of sources, which are files or directories of these, and counts one that is
/// LeftOut as a record. The split of a file is that of its name (guess_split) or the wanted one; if
/// it is about one image, that of a folder, else the wanted one, else that of the directory's name,
/// else "train".
/// @param set  with its options; names that it has count
/// @param listed  the files by split, where the data set lists them
/// @throws UserError (data) for a directory without such files, and with the losses if there is no
/// image; (configuration) if two files are the same split; (environment) for a missing path
ForeignSet read_sources(const Strings& sources, const SourceForm& form, ForeignSet set,
                        const FileReader& read, SplitFiles listed = {});

/// Reads a record of a file into images.
using RecordReader = void (*)(const Json& record, const std::string& path, const std::string& where,
                              ForeignSet& set, ForeignImages& images);

/// The reader of a JSON array or JSON lines. A record that is LeftOut is counted; reading continues
/// with the next. It throws UserError (data) for UTF-16, and for an array that is not JSON.
FileReader each_record(RecordReader read);

/// @throws LeftOut for a text that is not JSON
Json parse_record(std::string_view text);

/// The folder of `directory` that has one of these names in any letter case; the first name counts
/// most; empty if there is none.
std::filesystem::path find_folder(const std::filesystem::path& directory,
                                  std::span<const char* const> names);

/// The split that a folder between the root and a file names, the deepest if several do; "" for
/// none.
std::string find_split_folder(const std::filesystem::path& file, const std::filesystem::path& root);

/// The image of an annotation file for one image, still without objects.
ForeignImage image_of_file(const std::filesystem::path& annotation);
/// An image that a record of a file names; `width` and `height` of the record are its size.
ForeignImage image_of_record(const Json& record, const std::string& name, const std::string& file,
                             const std::string& where);

/// The note for an object that shows many, or that is marked as one.
inline constexpr char kCrowd[] = "crowds, which are no objects";

/// Reads the marks of an object, which may also be in its `attributes` (CVAT) or `flags` (labelMe):
/// those that make it none ("iscrowd", "ignore"), and the angle of its box. Counts objects marked
/// difficult, and those with a score below 1, which a model has answered.
void read_marks(const Json& value, ForeignEntry& entry, Ledger& ledger);

/// Takes points as what their number says: two are the corners of a box, four or more an outline.
void set_points(ForeignEntry& entry, const Outline& points);

/// Box, outline and marks of a JSON object, by the names that COCO, Hugging Face and answers have
/// for them.
/// @param form  of four numbers; two points are corners
ForeignEntry read_entry(const Json& value, std::string place, BoxForm form, Ledger& ledger);

/// The name of an object: the first of several members that is there, null without one. Counts
/// those that say another name.
const Json& name_member(const Json& entry, std::initializer_list<const char*> keys, Ledger& ledger);

/// Reads a record of one image: its name, under one of the usual keys, and `objects`, a list of
/// objects or an object of lists, with boxes, outlines and names under the usual keys.
/// @param form  of four numbers
/// @throws LeftOut for a record without an image or objects
ForeignImage read_object_record(const Json& record, const std::string& path,
                                const std::string& where, BoxForm form, ForeignSet& set);

}  // namespace rematch
