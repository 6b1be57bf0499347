#include "program/cli/predict_images.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/missing_path.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "tools/import/image_files.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

bool is_missing(const std::string& path) {
  std::error_code error;  // a broken link counts as an unreadable image
  return fs::symlink_status(path, error).type() == fs::file_type::not_found;
}

}  // namespace

Strings list_images(const Strings& paths, Terminal& terminal) {
  Strings images;
  std::map<std::string, int> passed_over;  // by ending
  for (const std::string& path : paths) {
    if (is_missing(path)) {
      throw missing_path("image", path, "give image files or directories of images");
    }
    if (!is_dir(path)) {
      images.push_back(path);
      continue;
    }
    Strings found;
    int64_t num_inner = 0;
    for (const auto& entry : fs::directory_iterator(path)) {
      if (is_dir(entry.path()))
        ++num_inner;
      else if (is_readable_image_name(entry.path()))
        found.push_back(entry.path().string());
      else if (is_image_name(entry.path()))
        ++passed_over[lower_case(entry.path().extension().string())];
    }
    if (num_inner > 0)
      terminal.warn(fmt::format("{}: {} not looked into", path,
                                counted(num_inner, "directory in it is", "directories in it are")));
    std::ranges::sort(found);
    images.insert(images.end(), found.begin(), found.end());
  }
  Strings endings;
  for (const auto& [ending, count] : passed_over)
    endings.push_back(fmt::format("{} {}", count, ending));
  if (!endings.empty())
    terminal.warn(
        fmt::format("images passed over, which are not read: {}; convert them to JPEG, "
                    "PNG or WebP",
                    join(endings, ", ")));
  if (images.empty()) {
    throw data_error({.error = "there are no images",
                      .where = paths.empty() ? "rematch predict" : paths.front(),
                      .what = "no file ends in .jpg, .jpeg, .jfif, .png or .webp",
                      .fix = "give image files or directories of images, after "
                             "the model: rematch predict MODEL IMAGE"});
  }
  return images;
}

}  // namespace rematch
