#include "tools/import/yolo_lists.h"

#include <algorithm>
#include <sstream>

#include "base/file.h"
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

constexpr int64_t kMostBytes = 1 << 16;  // of a .data file: others are no text

/// The file with its folder's real path, so that links and relative paths compare equal.
fs::path real_place(const fs::path& file) {
  std::error_code error;
  const fs::path folder = fs::canonical(fs::absolute(file).parent_path(), error);
  return error ? file.lexically_normal() : folder / file.filename();
}

/// The .data files of Darknet, sorted.
std::vector<fs::path> find_data_files(const fs::path& root) {
  std::vector<fs::path> files;
  for (const fs::path& place : {root, root / "data", root / "cfg"}) {
    std::error_code error;
    for (fs::directory_iterator entry(place, error), end; !error && entry != end;
         entry.increment(error)) {
      if (entry->path().extension() == ".data" && entry->is_regular_file(error) &&
          static_cast<int64_t>(entry->file_size(error)) <= kMostBytes)
        files.push_back(entry->path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Splits by the file names of their lists.
std::map<std::string, std::string> name_lists(const fs::path& root) {
  std::map<std::string, std::string> names = {
      {"train.txt", "train"}, {"val.txt", "val"}, {"valid.txt", "val"}, {"test.txt", "test"}};
  for (const fs::path& file : find_data_files(root)) {
    const std::string text = read_file(file.string());
    if (!is_valid_utf8(text)) continue;
    std::map<std::string, std::string> values;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (const size_t equals = line.find('='); equals != line.npos)
        values[python_strip(line.substr(0, equals))] =
            fs::path(python_strip(line.substr(equals + 1))).filename().string();
    }
    if (!values["valid"].empty()) names[values["valid"]] = "val";
    if (!values["train"].empty()) names[values["train"]] = "train";  // the same list for both
  }
  return names;
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

DarknetLists::DarknetLists(const fs::path& root, const fs::path& pictures, Ledger& ledger) {
  for (const auto& [name, split] : name_lists(root)) {
    for (const fs::path& list : {root / name, root / "data" / name}) {
      if (!fs::is_regular_file(list)) continue;
      for (const std::string& line : stripped_lines(list)) {
        if (!is_image_name(line)) continue;  // a label file, or a comment
        const fs::path image =
            resolve_yolo_path(list.parent_path(), pictures, line, /*is_image=*/true);
        if (fs::exists(image))
          add(image, split, ledger);
        else
          ledger.lose_record("an entry of a list without an image", list.string() + ": " + line);
      }
    }
  }
}

void DarknetLists::add(const fs::path& image, const std::string& split, Ledger& ledger) {
  listed_.insert(split);
  const auto [known, is_new] = splits_.emplace(real_place(image), split);
  if (is_new || known->second == split) return;
  ledger.note("images of two lists, kept for training or validation");
  known->second = split == "train" || known->second == "train" ? "train" : "val";
}

std::string DarknetLists::split_of(const fs::path& image, const std::string& of_folder) const {
  if (splits_.empty()) return of_folder.empty() ? "train" : of_folder;
  if (const auto found = splits_.find(real_place(image)); found != splits_.end())
    return found->second;
  return listed_.contains(of_folder) ? kUnlisted : of_folder;
}

}  // namespace rematch
