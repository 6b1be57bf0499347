#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace rematch {

/// True for an image's file name of a supported kind.
bool is_readable_image_name(const std::filesystem::path& path);

/// True for an image's file name, even of an unsupported kind, so that it is counted.
bool is_image_name(const std::filesystem::path& path);

/// Lists all images below a directory, sorted, and follows symbolic links. A directory reached
/// twice is read once; a broken link with an image's name counts as an image.
std::vector<std::filesystem::path> list_images(const std::filesystem::path& directory);

/// @throws UserError (data) if the path is not a directory
void require_directory(const std::filesystem::path& path);

/// Lists annotations with one file per image, by split. All files in `directory` are one split:
/// `wanted`, else the split in the directory's name, else "train". If there are none, the folders
/// train, val (or valid) and test are the splits. @param ending  e.g. ".xml"
/// @throws UserError (data) if two folders are one split, or files are in both places
std::map<std::string, std::vector<std::filesystem::path>> list_annotations(
    const std::filesystem::path& directory, const std::string& ending, const std::string& wanted);

/// Finds the image of an annotation: `name` in `directory`, else an image with the annotation's
/// file name. @param name  as in the annotation; its folders may be those of another machine
std::filesystem::path find_annotated_image(const std::filesystem::path& annotation,
                                           const std::filesystem::path& directory,
                                           const std::string& name);

}  // namespace rematch
