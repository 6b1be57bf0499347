#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <pugixml.hpp>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "import/directory_format.h"
#include "import/foreign.h"
#include "import/image_files.h"
#include "import/text_file.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLayout =
    "give a directory with Annotations/ (one XML per image) and JPEGImages/, or a directory with "
    "each XML next to its image";

[[noreturn]] void refuse_voc(const std::string& where, const std::string& what,
                             const std::string& fix = kLayout) {
  throw UserError(
      ErrorKind::kData,
      {.error = "this is not a Pascal VOC data set", .where = where, .what = what, .fix = fix});
}

fs::path annotation_path(const fs::path& root, const std::string& name) {
  return root / "Annotations" / (name + ".xml");
}

/// Reads a list of image names, one per line; names may contain blanks.
std::vector<std::string> read_names(const fs::path& root, const fs::path& list) {
  std::vector<std::string> names;
  int line_number = 0;
  for (const std::string& line : read_lines(list.string())) {
    ++line_number;
    if (!is_valid_utf8(line))
      refuse_voc(fmt::format("{}:{}", list.string(), line_number), "the line is not UTF-8",
                 "save the list as UTF-8");
    const std::string name = python_strip(line);
    if (name.empty()) continue;
    if (!fs::exists(annotation_path(root, name)))
      refuse_voc(fmt::format("{}:{}", list.string(), line_number),
                 fmt::format("there is no {}", annotation_path(root, name).string()),
                 "each line of the list names an image: correct it, or add the XML");
    names.push_back(name);
  }
  return names;
}

/// Finds the annotations of each split: from the lists in ImageSets, else all of Annotations/, else
/// labelImg's layout with each XML next to its image.
std::map<std::string, std::vector<fs::path>> find_splits(const fs::path& root,
                                                         const std::string& wanted) {
  std::map<std::string, std::vector<fs::path>> splits;
  if (!fs::is_directory(root / "Annotations")) {
    splits = list_annotations(root, ".xml", wanted);
    if (splits.empty())
      refuse_voc(root.string(), "it has neither a directory Annotations/ nor XML files",
                 import_fix(root.string(), "from-voc", kLayout));
    return splits;
  }
  for (const char* name : {"train", "val", "test"}) {
    const fs::path list = root / "ImageSets" / "Main" / (std::string(name) + ".txt");
    if (!fs::exists(list)) continue;
    for (const std::string& image : read_names(root, list))
      splits[name].push_back(annotation_path(root, image));
  }
  if (!splits.empty()) return splits;
  auto all = list_annotations(root / "Annotations", ".xml", wanted.empty() ? "train" : wanted);
  if (all.empty()) refuse_voc(root.string(), "its directory Annotations/ has no XML files");
  return all;
}

/// Refuses encodings that pugixml does not know (other than UTF-8, UTF-16, UTF-32 and Latin-1): it
/// would read them as UTF-8.
void check_encoding(const pugi::xml_document& document, const fs::path& path) {
  std::string encoding;
  for (const pugi::xml_node node : document.children()) {
    if (node.type() == pugi::node_declaration) encoding = node.attribute("encoding").value();
  }
  std::string name = encoding;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  for (const char* known : {"", "utf-8", "utf8", "utf-16", "utf-16le", "utf-16be", "utf-32",
                            "iso-8859-1", "latin1", "ascii", "us-ascii"}) {
    if (name == known) return;
  }
  refuse_voc(path.string(), fmt::format("its first line declares the encoding {}", encoding),
             "convert the file to UTF-8 (iconv -f ENCODING -t UTF-8 FILE) and write "
             "encoding=\"UTF-8\" in its first line");
}

/// Finds the only box of an object. Rotated boxes are <robndbox>.
pugi::xml_node find_box(const pugi::xml_node& object, const fs::path& path) {
  const pugi::xml_node box = object.child("bndbox");
  if (!box && object.child("robndbox"))
    refuse_voc(path.string(), "an <object> has a rotated box, <robndbox>, and no <bndbox>",
               "rotated boxes are not supported: write a <bndbox> around each, or export outlines "
               "in COCO format (from-coco --polygons)");
  if (!box)
    refuse_voc(path.string(), "an <object> has no <bndbox>", "add its box, or remove the object");
  if (box.next_sibling("bndbox"))
    refuse_voc(path.string(),
               fmt::format("an <object> (\"{}\") has two <bndbox>", object.child_value("name")),
               "write one <object> for each box");
  return box;
}

constexpr unsigned kParseAll = pugi::parse_default | pugi::parse_declaration;
constexpr const char* kCorner =
    "write each corner of a box as a number of pixels, or remove the object";

/// Reads a corner of a box in pixels. @throws UserError (data) if the text is not a finite number
double read_corner(const pugi::xml_node& box, const char* key, const fs::path& path) {
  if (!is_valid_utf8(box.child_value(key)))
    refuse_voc(path.string(), fmt::format("<{}> is not UTF-8", key), kCorner);
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
  const pugi::xml_parse_result parsed = document.load_file(path.c_str(), kParseAll);
  if (!parsed)
    refuse_voc(path.string(), fmt::format("{} (byte {})", parsed.description(),
                                          static_cast<int64_t>(parsed.offset)));
  check_encoding(document, path);
  const pugi::xml_node root = document.child("annotation");
  if (!root) refuse_voc(path.string(), "it has no <annotation>");
  const std::string name = root.child_value("filename");
  ForeignImage image{.path = find_annotated_image(path, images_dir, name).string(),
                     .width_px = root.child("size").child("width").text().as_int(),
                     .height_px = root.child("size").child("height").text().as_int(),
                     .objects = {}};
  for (const pugi::xml_node object : root.children("object")) {
    const pugi::xml_node box = find_box(object, path);
    if (object.child("difficult").text().as_int() != 0)
      ++set.notes["objects marked difficult, kept"];
    // VOC counts pixels from 1, and the last pixel belongs to the box.
    image.objects.push_back({.desc = object.child_value("name"),
                             .x0 = read_corner(box, "xmin", path) - 1,
                             .y0 = read_corner(box, "ymin", path) - 1,
                             .x1 = read_corner(box, "xmax", path),
                             .y1 = read_corner(box, "ymax", path),
                             .ring = {}});
  }
  return image;
}

}  // namespace

ForeignSet read_voc_dir(const std::string& directory, const ImportOptions& options) {
  const fs::path root(directory);
  require_directory(root);
  const bool has_image_folder = fs::is_directory(root / "Annotations");
  ForeignSet set;
  for (const auto& [split, files] : find_splits(root, options.split)) {
    for (const fs::path& file : files) {
      const fs::path images_dir = !options.images_dir.empty() ? fs::path(options.images_dir)
                                  : has_image_folder          ? root / "JPEGImages"
                                                              : file.parent_path();
      set.splits[split].push_back(read_annotation(file, images_dir, set));
    }
  }
  return set;
}

}  // namespace rematch
