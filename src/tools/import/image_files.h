#pragma once
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace rematch {

/// True for an image's file name of a kind that can be read here.
bool is_readable_image_name(const std::filesystem::path& path);

/// True for an image's file name, even of an unsupported kind, so that it is counted.
bool is_image_name(const std::filesystem::path& path);

/// Lists all images below a directory, sorted, and follows symbolic links. A directory reached
/// twice is read once; a broken link with an image's name counts as an image.
std::vector<std::filesystem::path> list_images(const std::filesystem::path& directory);

/// Lists annotations with one file per image, by split. All files in `directory` are one split:
/// `wanted`, else the split in the directory's name, else "train". If there are none, the folders
/// train, val (or valid) and test are the splits.
/// @param ending  e.g. ".xml"
/// @throws UserError (data) if two folders are one split, or files are in both places
std::map<std::string, std::vector<std::filesystem::path>> list_annotations(
    const std::filesystem::path& directory, const std::string& ending, const std::string& wanted);

/// The endings of images that can be read here, in lower case with their dots.
const std::vector<const char*>& readable_endings();
/// The same ending in capitals.
std::string uppercase_ending(const char* ending);

/// The folder of `directory` that has one of these names in any letter case; the first name counts
/// most; empty if there is none.
/// @param names  in lower case
std::filesystem::path find_folder(const std::filesystem::path& directory,
                                  std::span<const char* const> names);
/// A folder of images (images, JPEGImages, …) or of annotations (annotations, labels, xml, …).
std::filesystem::path find_image_folder(const std::filesystem::path& directory);
std::filesystem::path find_annotation_folder(const std::filesystem::path& directory);
bool is_annotation_folder(const std::string& name);

}  // namespace rematch
