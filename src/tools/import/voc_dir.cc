#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numbers>
#include <pugixml.hpp>

#include "base/error.h"
#include "base/text.h"
#include "tools/import/directory_format.h"
#include "tools/import/foreign.h"
#include "tools/import/geometry.h"
#include "tools/import/image_files.h"
#include "tools/import/reasons.h"
#include "tools/import/source_files.h"
#include "tools/import/text_file.h"

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

/// Reads a list of image names, one per line; names may contain blanks. A name without XML counts
/// as left out.
std::vector<fs::path> read_list(const fs::path& list, const fs::path& annotations, Ledger& ledger) {
  std::vector<fs::path> files;
  int line_number = 0;
  for (const std::string& line : read_lines(list.string())) {
    ++line_number;
    const std::string place = fmt::format("{}:{}", list.string(), line_number);
    if (!is_valid_utf8(line)) {
      ledger.lose_record("a line of a list that is not UTF-8", place);
      continue;
    }
    std::string name = python_strip(line);
    if (name.empty()) continue;
    fs::path file = annotations / (name + ".xml");
    // the lists of single classes have a flag after the name
    if (const size_t blank = name.find_last_of(" \t"); !fs::exists(file) && blank != name.npos)
      file = annotations / (python_strip(name.substr(0, blank)) + ".xml");
    if (fs::exists(file)) {
      files.push_back(file);
    } else {
      ledger.lose_record(
          "a name in a list without an XML",
          fmt::format("{}: there is no {}.xml in {}", place, name, annotations.string()));
    }
  }
  return files;
}

/// The only folder below `root` that is a data set with a folder of annotations, such as the
/// "raccoon_dataset-master" of an archive; empty for none or several.
fs::path find_inner_set(const fs::path& root) {
  fs::path found;
  for (const fs::directory_entry& entry : list_entries(root)) {
    if (find_folder(entry.path(), kAnnotationFolders).empty()) continue;
    if (!found.empty()) return {};
    found = entry.path();
  }
  return found;
}

/// Finds the annotations of each split: from the lists in ImageSets, else all of the folder of
/// annotations, else labelImg's layout with each XML next to its image.
SplitFiles find_files(const fs::path& root, const std::string& wanted, Ledger& ledger) {
  const fs::path folder = find_folder(root, kAnnotationFolders);
  SplitFiles splits;
  const std::pair<const char*, std::vector<const char*>> lists[] = {
      {"train", {"train", "trainval"}}, {"val", {"val", "valid"}}, {"test", {"test"}}};
  for (const auto& [split, names] : lists) {
    for (const char* name : names) {
      const fs::path list = root / "ImageSets" / "Main" / (std::string(name) + ".txt");
      if (!folder.empty() && !splits.contains(split) && fs::exists(list))
        splits[split] = read_list(list, folder, ledger);
    }
  }
  for (const fs::path& place : {folder, root}) {
    if (!splits.empty()) continue;
    splits = list_annotations(place, ".xml", wanted);
    lose_deeper_files(splits, "<annotation", ledger);
  }
  if (!splits.empty()) return splits;
  if (const fs::path inner = folder.empty() ? find_inner_set(root) : ""; !inner.empty())
    return find_files(inner, wanted, ledger);
  refuse_voc(root.string(),
             folder.empty()
                 ? "it has no XML files, and no directory Annotations/ with them"
                 : fmt::format("its directory {}/ has no XML files", folder.filename().string()),
             import_fix(root.string(), "from-voc", kLayout));
}

/// The declared encoding if pugixml does not know it and would read UTF-8; else "".
std::string find_bad_encoding(const pugi::xml_document& document) {
  constexpr const char* kKnown[] = {"",         "utf-8",    "utf8",    "utf-16",
                                    "utf-16le", "utf-16be", "utf-32",  "iso-8859-1",
                                    "latin1",   "ascii",    "us-ascii"};
  std::string encoding;
  for (const pugi::xml_node node : document.children()) {
    if (node.type() == pugi::node_declaration) encoding = node.attribute("encoding").value();
  }
  return is_among(encoding, kKnown) ? "" : encoding;
}

/// Reads the annotations of a data set.
class VocReader {
 public:
  VocReader(const ImportOptions& options, Ledger& ledger) : options_(options), ledger_(ledger) {}

  ForeignImage read(const fs::path& path) {
    ForeignImage image = image_of_file(path);
    const std::string& where = image.where;
    pugi::xml_document document;
    const pugi::xml_parse_result parsed =
        document.load_file(path.c_str(), pugi::parse_default | pugi::parse_declaration);
    const pugi::xml_node root = document.child("annotation");
    if (document.child("annotations"))
      refuse_other_format(where, read_file(where), "from-voc",
                          "this is not a data set in the layout of Pascal VOC");
    std::string problem;
    if (!parsed) {
      problem =
          fmt::format("{} (byte {})", parsed.description(), static_cast<int64_t>(parsed.offset));
    } else if (const std::string encoding = find_bad_encoding(document); !encoding.empty()) {
      problem = fmt::format(
          "its first line declares the encoding {}: convert it (iconv -f {} -t UTF-8 FILE)",
          encoding, encoding);
    } else if (!root) {
      problem = "it has no <annotation>";
    }
    if (!problem.empty()) {
      image.leave_out("an XML that cannot be read", where + ": " + problem);
      return image;
    }
    if (const std::string name = root.child_value("filename"); !name.empty()) image.name = name;
    const std::string_view database = root.child("source").child_value("database");
    const std::string_view owner = root.child("owner").child_value("name");
    is_counted_from_0_ = is_counted_from_0_ || database.find("roboflow") != database.npos ||
                         database == "Label Studio" || owner == "Label Studio";
    image.width_px = std::max(0, root.child("size").child("width").text().as_int());
    image.height_px = std::max(0, root.child("size").child("height").text().as_int());
    int number = 0;
    for (const pugi::xml_node object : root.children("object")) {
      ++number;
      std::string why;
      if (!read_object(object, image, why))
        image.lose(reason::kNoBox, fmt::format("{}: object {}{}", where, number, why));
    }
    if (const pugi::xml_node stray = root.find_node(is_stray))
      image.lose(reason::kNoBox, fmt::format("{}: a <{}> outside <object>", where, stray.name()));
    if (!root.first_child()) image.leave_out(reason::kNoBox, where + ": <annotation> is empty");
    return image;
  }

  /// Pixels are counted from 1 unless a box begins at 0, and the last pixel belongs to the box.
  void shift(std::vector<ForeignImage>& images) const {
    if (is_counted_from_0_) return;
    for (ForeignImage& image : images) {
      for (ForeignObject& object : image.objects) {
        if (!object.ring.empty()) continue;
        --object.x0;
        --object.y0;
      }
    }
  }

 private:
  /// Adds an object to the image.
  /// @param problem  receives what its box lacks
  /// @return false if it has no box that can be read
  bool read_object(const pugi::xml_node& node, ForeignImage& image, std::string& problem) {
    const pugi::xml_node box = node.child("bndbox"), rotated = node.child("robndbox"),
                         polygon = node.child("polygon");
    ForeignObject object;
    std::array<double, 5> values{};
    if (box.next_sibling("bndbox")) {
      problem = ": two <bndbox>; write one <object> for each";
      return false;
    }
    if (rotated) {
      if (!read_numbers(rotated, {"cx", "cy", "w", "h", "angle"}, values, problem)) return false;
      object = rotate_box(make_box({values[0], values[1], values[2], values[3]}, BoxForm::kCentre),
                          values[4] / std::numbers::pi * 180, options_.polygons, ledger_);
      is_counted_from_0_ = true;
    } else if (polygon && (options_.polygons || !box)) {
      const Outline points = read_polygon(polygon);
      if (points.size() < 3) return false;
      object = make_outline(points, options_.polygons, "outlines", ledger_);
    } else if (box) {
      if (!read_numbers(box, {"xmin", "ymin", "xmax", "ymax"}, values, problem)) return false;
      object = make_box({values[0], values[1], values[2], values[3]}, BoxForm::kCorners);
      is_counted_from_0_ = is_counted_from_0_ || object.x0 == 0 || object.y0 == 0;
      if (const double degrees = rotation(node); degrees != 0 && find_bad_corner(object) == nullptr)
        object = rotate_box(object, degrees, options_.polygons, ledger_);
    } else {
      problem = ": it has no <bndbox>";
      return false;
    }
    object.desc = node.child_value("name");
    if (node.child("difficult").text().as_int() != 0)
      ledger_.note("objects marked difficult, kept");
    image.objects.push_back(std::move(object));
    return true;
  }

  /// Degrees of the attribute `rotation`.
  static double rotation(const pugi::xml_node& object) {
    for (const pugi::xml_node attribute : object.child("attributes").children("attribute")) {
      if (std::string_view(attribute.child_value("name")) == "rotation")
        return parse_number(attribute.child_value("value")).value_or(0);
    }
    return 0;
  }

  static Outline read_polygon(const pugi::xml_node& polygon) {
    Outline points;
    for (int i = 1;; ++i) {
      const auto x = parse_number(polygon.child_value(fmt::format("x{}", i).c_str())),
                 y = parse_number(polygon.child_value(fmt::format("y{}", i).c_str()));
      if (!x || !y) return points;
      points.push_back({*x, *y});
    }
  }

  /// True for a box, an outline or an object of another layout, not inside an <object> of
  /// <annotation>.
  static bool is_stray(pugi::xml_node node) {
    constexpr const char* kGeometries[] = {"bndbox", "robndbox", "polygon", "points",
                                           "object", "objects",  "box"};
    if (!is_among(node.name(), kGeometries)) return false;
    while (std::string_view(node.parent().name()) != "annotation") node = node.parent();
    return std::string_view(node.name()) != "object";
  }

  static bool read_numbers(const pugi::xml_node& box, std::initializer_list<const char*> keys,
                           std::array<double, 5>& values, std::string& problem) {
    for (size_t i = 0; const char* key : keys) {
      const std::string text = box.child_value(key);
      const std::optional<double> number =
          is_valid_utf8(text) ? parse_number(python_strip(text)) : std::nullopt;
      if (!number) {
        problem = text.empty() ? fmt::format(": it has no <{}>", key)
                               : fmt::format(": <{}> is {}, not a number", key, show_json(text));
        return false;
      }
      values[i++] = *number;
    }
    return true;
  }

  const ImportOptions& options_;
  Ledger& ledger_;
  bool is_counted_from_0_ = false;
};

}  // namespace

ForeignSet read_voc_dir(const std::string& directory, const ImportOptions& options) {
  const fs::path root(directory);
  require_directory(root, "from-voc");
  ForeignSet set;
  VocReader reader(options, set.ledger);
  for (const auto& [split, files] : find_files(root, options.split, set.ledger)) {
    for (const fs::path& file : files) {
      set.sources.push_back(file.string());
      set.splits[split].push_back(reader.read(file));
    }
  }
  if (set.is_empty()) refuse_voc(root.string(), set.ledger.summary(0));
  for (auto& [split, images] : set.splits) reader.shift(images);
  return set;
}

}  // namespace rematch
