#include "tools/import/yolo_layout.h"

#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "learn/data/image_files.h"
#include "tools/import/source_files.h"
#include "tools/import/yolo_labels.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCommand = "from-yolo";
constexpr const char* kYaml[] = {".yaml", ".yml"};
// The first that is there counts: Label Studio numbers its classes by notes.json.
constexpr const char* kNamesFiles[] = {
    "notes.json",      "classes.txt",           "obj.names", "labels.txt", "names.txt",
    "_darknet.labels", "predefined_classes.txt"};

/// Finds a path of a YOLO data set. "../train/images" may be next to the YAML, as in exports of
/// Roboflow; a path of another machine is looked for by its last parts.
/// @param other  another folder to look in
/// @param is_image  of a list: its last part is enough; "images" alone may be another split
fs::path resolve(const fs::path& root, const fs::path& other, std::string entry, bool is_image) {
  std::replace(entry.begin(), entry.end(), '\\', '/');
  fs::path written = root / entry;
  while (true) {
    for (const fs::path& path : {root / entry, other / entry}) {
      if (fs::exists(path)) return path;
    }
    const size_t slash = entry.find('/');
    if (slash == entry.npos || (!is_image && entry.find('/', slash + 1) == entry.npos))
      return written;
    entry.erase(0, slash + 1);
  }
}

/// The images of a split: all below a directory, or those of a list, one path a line.
std::vector<fs::path> list_split_images(const fs::path& place, const fs::path& root) {
  if (fs::is_directory(place)) return list_files(place, is_image_name);
  std::vector<fs::path> images;
  for (const std::string& line : read_lines(place.string())) {
    if (is_image_name(line))  // no comment
      images.push_back(resolve(place.parent_path(), root, line, /*is_image=*/true));
  }
  return images;
}

YoloLayout read_yaml(const std::string& path, const ImportOptions& options, Ledger& ledger) {
  const YAML::Node yaml = read_yaml_file(path);
  YoloLayout layout{
      .source = path,
      .names = options.names.empty() ? NamesById(yaml, path) : NamesById(options.names),
      .is_yaml = true};
  if (const YAML::Node shape = yaml["kpt_shape"]; shape && !shape.IsNull())
    refuse_source(kCommand, path, "\"kpt_shape\" says that its lines have keypoints", kBoxesOnly);
  const fs::path beside = fs::path(path).parent_path();
  std::string root = yaml["path"] ? yaml["path"].as<std::string>() : "";
  std::replace(root.begin(), root.end(), '\\', '/');
  root = options.images_dir.empty() ? (beside / root).string() : options.images_dir;
  for (const std::string name : {"train", "val", "test"}) {
    const YAML::Node split = yaml[name];
    if (!split || split.IsNull()) continue;
    for (const std::string& entry : split.IsSequence() ? split.as<std::vector<std::string>>()
                                                       : std::vector{split.as<std::string>()}) {
      const fs::path place = resolve(root, beside, entry, /*is_image=*/false);
      if (!fs::exists(place) && name == "test") {  // of some exports, which do not need it
        ledger.note("split test, which the YAML lists but does not exist");
        continue;
      }
      if (!fs::exists(place))
        refuse_source(
            kCommand, place.string(),
            "it is neither a directory of images nor a text file of paths",
            "correct \"path\" and the splits in the YAML, or pass the directory of \"path\" "
            "with --images");
      layout.has_lists = layout.has_lists || !fs::is_directory(place);
      std::vector<fs::path>& images = layout.images[name];
      for (fs::path& image : list_split_images(place, root)) images.push_back(std::move(image));
    }
  }
  if (layout.images.empty())
    refuse_source(kCommand, path, "none of train, val and test is set", "add train: images/train");
  return layout;
}

/// The file of class names of a directory without YAML; empty if there is none.
std::string find_names_file(const std::string& root) {
  const auto rank = [](const fs::path& path) {
    return std::find(std::begin(kNamesFiles), std::end(kNamesFiles),
                     lower_case(path.filename().string()));
  };
  const std::vector<fs::path> all = list_files(root, [&](const fs::path& path) {
    return rank(path) != std::end(kNamesFiles) &&
           (path.extension() != ".json" ||
            read_file(path.string()).find("\"categories\"") != std::string::npos);
  });
  if (all.empty()) return "";
  const fs::path& found =
      *std::min_element(all.begin(), all.end(),
                        [&](const fs::path& a, const fs::path& b) { return rank(a) < rank(b); });
  for (const fs::path& path : all) {
    if (rank(path) == rank(found) && NamesById(path.string()) != NamesById(found.string()))
      refuse_source(kCommand, root, fmt::format("{} and {} differ", found.string(), path.string()),
                    "convert the folders one at a time, or name the right file with --names");
  }
  return found.string();
}

/// The layout of a directory without YAML: splits by folders.
/// @throws UserError (data) if a text file in it lists images, which gives the splits
YoloLayout find_layout(const std::string& root, const ImportOptions& options, ForeignSet& set) {
  for (const fs::path& file : list_files(root, [&](const fs::path& path) {
         return path.extension() == ".txt" && options.split.empty();
       })) {
    const std::vector<std::string> lines = read_lines(file.string());
    const auto line = std::find_if_not(lines.begin(), lines.end(), [](const std::string& each) {
      return each.empty() || each.starts_with('#');
    });
    if (line != lines.end() && is_image_name(*line))
      refuse_source(
          kCommand, file.string(), "it lists images, and no YAML says of which split",
          "write data.yaml there: train: train.txt / val: val.txt / names: [cat, dog, …]; or "
          "name one split for all images: --split train");
  }
  const std::string names = options.names.empty() ? find_names_file(root) : options.names;
  if (options.names.empty() && !names.empty()) {
    set.sources.push_back(names);
    set.ledger.note("file of class names found: " + names);
  }
  YoloLayout layout{.source = root, .names = NamesById(names)};
  const fs::path pictures = options.images_dir.empty() ? root : options.images_dir;
  for (fs::path& image : list_files(pictures, is_image_name)) {
    std::string split = options.split.empty() ? find_split_folder(image, pictures) : options.split;
    layout.images[split.empty() ? "train" : split].push_back(std::move(image));
  }
  if (layout.images.empty())
    refuse_source(kCommand, root, "the directory has no YAML, and no images", "");
  return layout;
}

/// The path itself, or the only YAML in that directory; empty if a directory has none.
std::string find_yaml(const std::string& path) {
  const bool is_directory = fs::is_directory(path);
  if (!is_directory && !is_among(fs::path(path).extension().string(), kYaml))
    refuse_source(kCommand, path, "it is neither a YAML nor a directory",
                  "give the directory of images and labels; --names takes a list of class names");
  if (!is_directory) return path;
  std::string found;
  for (const fs::directory_entry& entry : list_entries(path)) {
    if (!is_among(entry.path().extension().string(), kYaml)) continue;
    if (!found.empty())
      refuse_source(kCommand, path, "the directory has several YAML files",
                    fmt::format("give one of them: {}, {}", found, entry.path().string()));
    found = entry.path().string();
  }
  return found;
}

}  // namespace

YoloLayout read_yolo_layout(const std::string& yaml_or_directory, const ImportOptions& options,
                            ForeignSet& set) {
  const std::string yaml = find_yaml(yaml_or_directory);
  if (yaml.empty()) return find_layout(yaml_or_directory, options, set);
  set.sources.push_back(yaml);
  return read_yaml(yaml, options, set.ledger);
}

}  // namespace rematch
