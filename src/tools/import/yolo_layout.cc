#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <iterator>

#include "base/file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "tools/import/image_files.h"
#include "tools/import/yolo_parts.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kYaml[] = {".yaml", ".yml"};
// The first that is there counts: Label Studio numbers its classes by notes.json.
constexpr const char* kNamesFiles[] = {"notes.json", "classes.txt", "obj.names"};

/// Finds a path of a YOLO data set. "../train/images" may be next to the YAML, as in exports of
/// Roboflow; a path of another machine is looked for by its last parts.
/// @param other  another folder to look in
fs::path resolve(const fs::path& root, const fs::path& other, std::string entry) {
  std::ranges::replace(entry, '\\', '/');
  fs::path written = root / entry;
  while (true) {
    for (const fs::path& path : {root / entry, other / entry}) {
      if (path_exists(path)) return path;
    }
    const size_t slash = entry.find('/');
    // the last part alone may be another image or split
    if (slash == entry.npos || entry.find('/', slash + 1) == entry.npos) return written;
    entry.erase(0, slash + 1);
  }
}

/// The images of a split: all below a directory, or those of a list, one path a line.
Paths list_split_images(const fs::path& place, const fs::path& root) {
  if (is_dir(place)) return list_files(place, is_image_name);
  Paths images;
  for (const std::string& line : read_lines(place)) {
    if (is_image_name(line))  // no comment
      images.push_back(resolve(place.parent_path(), root, line));
  }
  return images;
}

YoloLayout read_yaml(const std::string& path, ForeignSet& set) {
  const ImportOptions& options = set.options;
  const YAML::Node yaml = read_yaml_file(path);
  YoloLayout layout{.source = path, .is_yaml = true};
  set.sources.push_back(path);
  if (options.names.empty()) set.names = NamesById(yaml, path);
  if (const YAML::Node shape = yaml["kpt_shape"]; shape && !shape.IsNull())
    refuse_keypoints(path, "\"kpt_shape\" says that its lines have keypoints");
  const int64_t num_names = std::ssize(set.names.in_order());
  const YAML::Node count = yaml["nc"];
  if (options.names.empty() && count && count.as<int64_t>(num_names) != num_names)
    refuse_yolo(
        path,
        fmt::format("\"nc\" is {}, and there are {}", count.Scalar(), counted(num_names, "name")),
        "correct one of them; a comma may be missing");
  const fs::path beside = fs::path(path).parent_path();
  std::string root = yaml["path"] ? yaml["path"].as<std::string>() : "";
  std::ranges::replace(root, '\\', '/');
  root = options.images_dir.empty() ? (beside / root).string() : options.images_dir;
  for (const std::string name : {"train", "val", "test"}) {
    const YAML::Node split = yaml[name];
    if (!split || split.IsNull()) continue;
    for (const std::string& entry :
         split.IsSequence() ? split.as<Strings>() : std::vector{split.as<std::string>()}) {
      const fs::path place = resolve(root, beside, entry);
      if (!path_exists(place)) {
        if (name != "test")
          refuse_yolo(
              place, "it is neither a directory of images nor a text file of paths",
              "correct \"path\" and the splits in the YAML, or pass the directory of \"path\" "
              "with --images");
        set.ledger.note("split test, which the YAML lists but does not exist");  // some exports
        continue;
      }
      layout.has_lists = layout.has_lists || !is_dir(place);
      Paths& images = layout.images[name];
      for (fs::path& image : list_split_images(place, root)) images.push_back(std::move(image));
    }
  }
  if (layout.images.empty())
    refuse_yolo(path, "none of train, val and test is set", "add train: images/train");
  return layout;
}

/// The file of class names of a directory without YAML; empty if there is none.
/// @throws UserError (data) for several that differ
std::string find_names_file(const std::string& root) {
  for (const char* name : kNamesFiles) {
    const Paths found = list_files(
        root, [name](const fs::path& path) { return lower_case(path.filename()) == name; });
    for (const fs::path& path : found) {
      if (NamesById(path) != NamesById(found[0]))
        refuse_yolo(root, fmt::format("{} and {} differ", found[0].string(), path.string()),
                    "convert the folders one at a time, or name the right file with --names");
    }
    if (!found.empty()) return found[0];
  }
  return "";
}

/// The layout of a directory without YAML: splits by folders.
YoloLayout find_layout(const std::string& root, ForeignSet& set) {
  const ImportOptions& options = set.options;
  const std::string names = options.names.empty() ? find_names_file(root) : "";
  if (!names.empty()) {
    set.names = NamesById(names);
    set.sources.push_back(names);
    set.ledger.note("file of class names found: " + names);
  }
  YoloLayout layout{.source = root};
  const fs::path pictures = options.images_dir.empty() ? root : options.images_dir;
  for (fs::path& image : list_files(pictures, is_image_name)) {
    std::string split = options.split.empty() ? find_split_folder(image, pictures) : options.split;
    layout.images[split.empty() ? "train" : split].push_back(std::move(image));
  }
  if (layout.images.empty()) refuse_yolo(root, "the directory has no YAML, and no images");
  return layout;
}

/// The path itself, or the only YAML in that directory; empty if a directory has none.
std::string find_yaml(const std::string& path) {
  if (!is_dir(path)) return path;
  std::string found;
  for (const fs::directory_entry& entry : list_entries(path)) {
    if (!is_among(entry.path().extension(), kYaml)) continue;
    if (!found.empty())
      refuse_yolo(path, "the directory has several YAML files",
                  fmt::format("give one of them: {}, {}", found, entry.path().string()));
    found = entry.path();
  }
  return found;
}

}  // namespace

YoloLayout read_yolo_layout(const std::string& yaml_or_directory, ForeignSet& set) {
  const std::string yaml = find_yaml(yaml_or_directory);
  if (yaml.empty()) return find_layout(yaml_or_directory, set);
  try {
    return read_yaml(yaml, set);
  } catch (const YAML::Exception& error) {
    refuse_yolo(
        yaml, error.what(),
        "correct it: path, train and val are texts, names is a list or {0: cat, 1: dog, …}");
  }
}

}  // namespace rematch
