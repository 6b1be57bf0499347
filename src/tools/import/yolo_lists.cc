#include "tools/import/yolo_lists.h"

#include <algorithm>

#include "base/text.h"
#include "tools/import/image_files.h"
#include "tools/import/text_file.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

/// The lines of a text file without the blanks around them, where it is UTF-8.
std::vector<std::string> stripped_lines(const fs::path& path) {
  std::vector<std::string> lines;
  for (const std::string& line : read_lines(path.string()))
    lines.push_back(is_valid_utf8(line) ? python_strip(line) : line);
  std::erase_if(lines, [](const std::string& line) { return line.empty(); });
  return lines;
}

/// File name of the list of validation, as a .data file has it ("valid = data/test.txt"); "" if
/// none does.
std::string find_validation_list(const fs::path& root) {
  for (const auto& entry : fs::directory_iterator(root)) {
    if (entry.path().extension() != ".data" || !entry.is_regular_file()) continue;
    for (const std::string& line : stripped_lines(entry.path())) {
      const size_t equals = line.find('=');
      if (equals != line.npos && python_strip(line.substr(0, equals)) == "valid")
        return fs::path(python_strip(line.substr(equals + 1))).filename().string();
    }
  }
  return "";
}

}  // namespace

fs::path resolve_yolo_path(const fs::path& root, const fs::path& place, std::string entry,
                           bool is_image) {
  std::replace(entry.begin(), entry.end(), '\\', '/');
  fs::path path = fs::path(entry).is_absolute() ? fs::path(entry) : root / entry;
  if (fs::exists(path)) return path;
  const auto find_beside = [&](const std::string& part) {
    for (const fs::path& folder : {root, place}) {
      if (fs::exists(folder / part)) return folder / part;
    }
    return fs::path();
  };
  const bool is_elsewhere =
      is_image || entry.starts_with('/') || (entry.size() > 1 && entry[1] == ':');
  std::string rest = entry.starts_with("../") ? entry.substr(3) : entry;
  if (fs::path found = find_beside(rest); !found.empty()) return found;
  while (is_elsewhere && rest.find('/') != rest.npos) {
    rest.erase(0, rest.find('/') + 1);
    // "images" alone may be another split
    const bool is_enough = is_image || rest.find('/') != rest.npos;
    if (fs::path found = find_beside(rest); is_enough && !found.empty()) return found;
  }
  return path;
}

std::vector<fs::path> list_split_images(const fs::path& path, const fs::path& root) {
  if (fs::is_directory(path)) return list_images(path);
  std::vector<fs::path> images;
  for (const std::string& line : stripped_lines(path))
    images.push_back(resolve_yolo_path(path.parent_path(), root, line, /*is_image=*/true));
  std::sort(images.begin(), images.end());
  return images;
}

std::map<fs::path, std::string> read_darknet_lists(const fs::path& root, const fs::path& pictures) {
  constexpr std::pair<const char*, const char*> kLists[] = {
      {"train.txt", "train"}, {"val.txt", "val"}, {"valid.txt", "val"}, {"test.txt", "test"}};
  const std::string validation = find_validation_list(root);
  std::map<fs::path, std::string> splits;
  for (const auto& [name, split] : kLists) {
    const fs::path list = root / name;
    if (!fs::is_regular_file(list)) continue;
    const std::vector<std::string> lines = stripped_lines(list);
    if (lines.empty() || !is_image_name(lines.front())) continue;
    for (const fs::path& image : list_split_images(list, pictures))
      splits.emplace(image.lexically_normal(), name == validation ? "val" : split);
  }
  return splits;
}

}  // namespace rematch
