#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace rematch {

/// True for the name of an image of a kind that can be read here.
bool is_readable_image_name(const std::filesystem::path& path);

/// True for the name of an image, also of a kind that cannot be read here, so that it is counted.
bool is_image_name(const std::filesystem::path& path);

/// All images below a directory, sorted, through symbolic links too. A directory that is reached
/// twice is read once; a link to nothing counts as an image if its name is one.
std::vector<std::filesystem::path> images_below(const std::filesystem::path& directory);

/// @throws UserError (data) unless it is a directory
void require_directory(const std::filesystem::path& path);

/// Annotations of one file per image, by split: all files of `directory` with that ending are one
/// split, `wanted`, else what the directory's name says, else "train"; without any, those of its
/// folders train, val (or valid) and test. Empty when there are none. @param ending  e.g. ".xml"
/// @throws UserError (data) when two folders are one split
std::map<std::string, std::vector<std::filesystem::path>> annotation_files(
    const std::filesystem::path& directory, const std::string& ending, const std::string& wanted);

/// The image of an annotation: `name` in `directory`; where that is missing, an image of the
/// annotation's own name. @param name  as the annotation says; its folders are another machine's
std::filesystem::path image_of_annotation(const std::filesystem::path& annotation,
                                          const std::filesystem::path& directory,
                                          const std::string& name);

}  // namespace rematch
