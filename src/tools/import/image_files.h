#pragma once
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace rematch {

/// The endings, in lower case, of images that can be read here.
inline constexpr const char* kImageEndings[] = {".jpg", ".jpeg", ".jfif", ".png", ".webp"};

/// True for one of these names in any letter case.
/// @param names  in lower case
bool is_among(const std::string& name, std::span<const char* const> names);

/// True for an image's file name of a kind that can be read here.
bool is_readable_image_name(const std::filesystem::path& path);

/// True for an image's file name, even of an unsupported kind, so that it is counted.
bool is_image_name(const std::filesystem::path& path);

/// The entries of a directory in any order; none if it cannot be read.
std::vector<std::filesystem::directory_entry> list_entries(const std::filesystem::path& directory);

/// All files below a directory whose names fit, sorted, but for "._NAME", which archives made on
/// macOS hold next to NAME. Follows symbolic links; a directory reached twice is read once. A
/// broken link counts as a file.
std::vector<std::filesystem::path> list_files(
    const std::filesystem::path& directory,
    const std::function<bool(const std::filesystem::path&)>& fits);

}  // namespace rematch
