#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <pugixml.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "import/foreign.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& where, const std::string& what) {
  throw UserError(ErrorKind::kData, {.error = "this is not a Pascal VOC data set",
                                     .where = where,
                                     .what = what,
                                     .fix = "give the directory that holds Annotations/ (one XML an image) and JPEGImages/"});
}

std::vector<std::string> names_in(const fs::path& list) {
  std::vector<std::string> names;
  for (const std::string& line : split(read_file(list.string()), '\n')) {
    const std::string name = line.substr(0, line.find_first_of(" \t\r"));
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

/// Names of images by split.
std::map<std::string, std::vector<std::string>> splits_of(const fs::path& root, const std::string& wanted) {
  std::map<std::string, std::vector<std::string>> splits;
  for (const char* name : {"train", "val", "test"}) {
    const fs::path list = root / "ImageSets" / "Main" / (std::string(name) + ".txt");
    if (fs::exists(list)) splits[name] = names_in(list);
  }
  if (!splits.empty()) return splits;
  std::vector<std::string> all;
  for (const auto& entry : fs::directory_iterator(root / "Annotations")) {
    if (entry.path().extension() == ".xml") all.push_back(entry.path().stem().string());
  }
  std::sort(all.begin(), all.end());
  splits[wanted.empty() ? "train" : wanted] = all;
  return splits;
}

ForeignImage read_annotation(const fs::path& path, const fs::path& images_dir, ForeignSet& set) {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_file(path.c_str());
  if (!parsed) fail(path.string(), fmt::format("{} (byte {})", parsed.description(), static_cast<int64_t>(parsed.offset)));
  const pugi::xml_node root = document.child("annotation");
  if (!root) fail(path.string(), "it has no <annotation>");
  const std::string name = root.child_value("filename");
  ForeignImage image{.path = (images_dir / (name.empty() ? path.stem().string() + ".jpg" : name)).string(),
                     .width_px = root.child("size").child("width").text().as_int(),
                     .height_px = root.child("size").child("height").text().as_int(),
                     .objects = {}};
  for (const pugi::xml_node object : root.children("object")) {
    const pugi::xml_node box = object.child("bndbox");
    if (!box) fail(path.string(), "an <object> has no <bndbox>");
    if (object.child("difficult").text().as_int() != 0) ++set.notes["objects marked difficult, kept"];
    // Its pixels are counted from 1, and the last one is inside.
    image.objects.push_back({.desc = object.child_value("name"),
                             .x0 = box.child("xmin").text().as_double() - 1,
                             .y0 = box.child("ymin").text().as_double() - 1,
                             .x1 = box.child("xmax").text().as_double(),
                             .y1 = box.child("ymax").text().as_double(),
                             .ring = {}});
  }
  return image;
}

}  // namespace

ForeignSet read_voc_dir(const std::string& directory, const ImportOptions& options) {
  const fs::path root(directory);
  if (!fs::is_directory(root / "Annotations")) fail(directory, "it has no directory Annotations");
  const fs::path images_dir = options.images_dir.empty() ? root / "JPEGImages" : fs::path(options.images_dir);
  ForeignSet set;
  for (const auto& [split, names] : splits_of(root, options.split)) {
    for (const std::string& name : names)
      set.splits[split].push_back(read_annotation(root / "Annotations" / (name + ".xml"), images_dir, set));
  }
  return set;
}

}  // namespace rematch
