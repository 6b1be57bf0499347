#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <pugixml.hpp>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "import/foreign.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLayout =
    "give the directory that holds Annotations/ (one XML an image) and JPEGImages/";

[[noreturn]] void refuse_voc(const std::string& where, const std::string& what,
                             const char* fix = kLayout) {
  throw UserError(
      ErrorKind::kData,
      {.error = "this is not a Pascal VOC data set", .where = where, .what = what, .fix = fix});
}

fs::path annotation_of(const fs::path& root, const std::string& name) {
  return root / "Annotations" / (name + ".xml");
}

/// A name fills its line: it may hold blanks.
std::vector<std::string> names_in(const fs::path& root, const fs::path& list) {
  std::vector<std::string> names;
  int line_number = 0;
  for (const std::string& line : split(read_file(list.string()), '\n')) {
    ++line_number;
    const std::string name = python_strip(line);
    if (name.empty()) continue;
    if (!fs::exists(annotation_of(root, name)))
      refuse_voc(fmt::format("{}:{}", list.string(), line_number),
                 fmt::format("there is no {}", annotation_of(root, name).string()),
                 "each line of the list names an image: correct it, or add the XML");
    names.push_back(name);
  }
  return names;
}

/// Names of images by split.
std::map<std::string, std::vector<std::string>> splits_of(const fs::path& root,
                                                          const std::string& wanted) {
  std::map<std::string, std::vector<std::string>> splits;
  for (const char* name : {"train", "val", "test"}) {
    const fs::path list = root / "ImageSets" / "Main" / (std::string(name) + ".txt");
    if (fs::exists(list)) splits[name] = names_in(root, list);
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

constexpr const char* kCorner =
    "write each corner of a box as a number of pixels, or remove the object";

/// A corner of a box in pixels. Text that is not wholly a finite number is an error, never a zero.
double corner_of(const pugi::xml_node& box, const char* key, const fs::path& path) {
  const std::string text = python_strip(box.child_value(key));
  std::istringstream stream(text);
  double value = 0;
  if (text.empty()) refuse_voc(path.string(), fmt::format("a <bndbox> has no <{}>", key), kCorner);
  if (!(stream >> value) || !stream.eof() || !std::isfinite(value))
    refuse_voc(path.string(), fmt::format("<{}> is \"{}\", not a number", key, text), kCorner);
  return value;
}

ForeignImage read_annotation(const fs::path& path, const fs::path& images_dir, ForeignSet& set) {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_file(path.c_str());
  if (!parsed)
    refuse_voc(path.string(), fmt::format("{} (byte {})", parsed.description(),
                                          static_cast<int64_t>(parsed.offset)));
  const pugi::xml_node root = document.child("annotation");
  if (!root) refuse_voc(path.string(), "it has no <annotation>");
  const std::string name = root.child_value("filename");
  ForeignImage image{
      .path = (images_dir / (name.empty() ? path.stem().string() + ".jpg" : name)).string(),
      .width_px = root.child("size").child("width").text().as_int(),
      .height_px = root.child("size").child("height").text().as_int(),
      .objects = {}};
  for (const pugi::xml_node object : root.children("object")) {
    const pugi::xml_node box = object.child("bndbox");
    if (!box) refuse_voc(path.string(), "an <object> has no <bndbox>");
    if (object.child("difficult").text().as_int() != 0)
      ++set.notes["objects marked difficult, kept"];
    // Its pixels are counted from 1, and the last one is inside.
    image.objects.push_back({.desc = object.child_value("name"),
                             .x0 = corner_of(box, "xmin", path) - 1,
                             .y0 = corner_of(box, "ymin", path) - 1,
                             .x1 = corner_of(box, "xmax", path),
                             .y1 = corner_of(box, "ymax", path),
                             .ring = {}});
  }
  return image;
}

}  // namespace

ForeignSet read_voc_dir(const std::string& directory, const ImportOptions& options) {
  const fs::path root(directory);
  if (!fs::is_directory(root / "Annotations"))
    refuse_voc(directory, "it has no directory Annotations");
  const fs::path images_dir =
      options.images_dir.empty() ? root / "JPEGImages" : fs::path(options.images_dir);
  ForeignSet set;
  for (const auto& [split, names] : splits_of(root, options.split)) {
    std::vector<ForeignImage>& images = set.splits[split];
    for (const std::string& name : names)
      images.push_back(read_annotation(annotation_of(root, name), images_dir, set));
  }
  return set;
}

}  // namespace rematch
