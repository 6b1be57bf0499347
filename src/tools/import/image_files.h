#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace rematch {

/// The endings, in lower case, of images that can be read here.
inline constexpr const char* kImageEndings[] = {".jpg", ".jpeg", ".png", ".webp"};

/// Names, in lower case, of folders that hold images or annotations.
inline constexpr const char* kImageFolders[] = {"images", "jpegimages", "image",   "imgs",
                                                "img",    "photos",     "pictures"};
inline constexpr const char* kAnnotationFolders[] = {"annotations", "annotation", "annots", "annot",
                                                     "labels",      "label",      "xml",    "xmls",
                                                     "anno",        "annos",      "bbox",   "txt"};

/// True for one of these names in any letter case.
/// @param names  in lower case
bool is_among(const std::string& name, std::span<const char* const> names);

/// True for an image's file name of a kind that can be read here.
bool is_readable_image_name(const std::filesystem::path& path);

/// True for "._NAME", which archives made on macOS hold next to NAME.
bool is_macos_copy(const std::filesystem::path& path);

/// True for an image's file name, even of an unsupported kind, so that it is counted.
bool is_image_name(const std::filesystem::path& path);

/// The files whose names are `path` with an ending of images that can be read here.
std::vector<std::string> find_with_ending(const std::filesystem::path& path);

/// The entries of a directory in any order; none if it cannot be read.
std::vector<std::filesystem::directory_entry> list_entries(const std::filesystem::path& directory);

/// Lists all images below a directory, sorted, and follows symbolic links. A directory reached
/// twice is read once; a broken link with an image's name counts as an image.
std::vector<std::filesystem::path> list_images(const std::filesystem::path& directory);

/// The folder of `directory` that has one of these names in any letter case; the first name counts
/// most; empty if there is none.
/// @param names  in lower case
std::filesystem::path find_folder(const std::filesystem::path& directory,
                                  std::span<const char* const> names);

}  // namespace rematch
