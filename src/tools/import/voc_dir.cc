#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numbers>
#include <pugixml.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "tools/import/directory_format.h"
#include "tools/import/foreign.h"
#include "tools/import/geometry.h"
#include "tools/import/image_files.h"
#include "tools/import/reasons.h"
#include "tools/import/text_file.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr double kHalfTurn = 180;
constexpr const char* kLayout =
    "give a directory with Annotations/ (one XML per image) and JPEGImages/, or a directory with "
    "each XML next to its image";

[[noreturn]] void refuse_voc(const std::string& where, const std::string& what,
                             const std::string& fix = kLayout) {
  throw UserError(
      ErrorKind::kData,
      {.error = "this is not a Pascal VOC data set", .where = where, .what = what, .fix = fix});
}

/// Places of the XML files of a data set.
struct Layout {
  fs::path annotations;  ///< directory of the XML files
  std::map<std::string, std::vector<fs::path>> splits;
};

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
  std::error_code error;
  for (fs::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code unreachable;
    if (!entry->is_directory(unreachable) || find_annotation_folder(entry->path()).empty())
      continue;
    if (!found.empty()) return {};
    found = entry->path();
  }
  return found;
}

/// Finds the annotations of each split: from the lists in ImageSets, else all of the folder of
/// annotations, else labelImg's layout with each XML next to its image.
Layout find_layout(const fs::path& root, const std::string& wanted, Ledger& ledger) {
  Layout layout{.annotations = find_annotation_folder(root), .splits = {}};
  if (layout.annotations.empty()) {
    layout.splits = list_annotations(root, ".xml", wanted);
    if (!layout.splits.empty()) return layout;
    if (const fs::path inner = find_inner_set(root); !inner.empty())
      return find_layout(inner, wanted, ledger);
    refuse_voc(root.string(), "it has no XML files, and no directory Annotations/ with them",
               import_fix(root.string(), "from-voc", kLayout));
  }
  for (const char* name : {"train", "val", "test"}) {
    const fs::path list = root / "ImageSets" / "Main" / (std::string(name) + ".txt");
    if (fs::exists(list)) layout.splits[name] = read_list(list, layout.annotations, ledger);
  }
  if (!layout.splits.empty()) return layout;
  layout.splits = list_annotations(layout.annotations, ".xml", wanted);
  if (layout.splits.empty()) layout.splits = list_annotations(root, ".xml", wanted);
  if (layout.splits.empty())
    refuse_voc(
        root.string(),
        fmt::format("its directory {}/ has no XML files", layout.annotations.filename().string()),
        import_fix(root.string(), "from-voc", kLayout));
  return layout;
}

/// Refuses encodings that pugixml does not know (other than UTF-8, UTF-16, UTF-32 and Latin-1): it
/// would read them as UTF-8.
/// @return the encoding, or "" for a known one
std::string find_bad_encoding(const pugi::xml_document& document) {
  std::string encoding;
  for (const pugi::xml_node node : document.children()) {
    if (node.type() == pugi::node_declaration) encoding = node.attribute("encoding").value();
  }
  const std::string name = lower_case(encoding);
  for (const char* known : {"", "utf-8", "utf8", "utf-16", "utf-16le", "utf-16be", "utf-32",
                            "iso-8859-1", "latin1", "ascii", "us-ascii"}) {
    if (name == known) return "";
  }
  return encoding;
}

/// Reads the annotations of a data set.
class VocReader {
 public:
  VocReader(const ImportOptions& options, Ledger& ledger) : options_(options), ledger_(ledger) {}

  ForeignImage read(const fs::path& path, const std::string& directory) {
    const std::string where = path.string();
    ForeignImage image{.name = path.stem().string(),
                       .directory = directory,
                       .stem = path.stem().string(),
                       .where = where};
    pugi::xml_document document;
    const pugi::xml_parse_result parsed =
        document.load_file(path.c_str(), pugi::parse_default | pugi::parse_declaration);
    const pugi::xml_node root = document.child("annotation");
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
      image.lose("an XML that cannot be read", where + ": " + problem);
      return image;
    }
    if (const std::string name = root.child_value("filename"); !name.empty()) image.name = name;
    is_counted_from_0_ =
        is_counted_from_0_ ||
        std::string_view(root.child("source").child_value("database")).find("roboflow") !=
            std::string_view::npos;
    image.width_px = std::max(0, root.child("size").child("width").text().as_int());
    image.height_px = std::max(0, root.child("size").child("height").text().as_int());
    int number = 0;
    for (const pugi::xml_node object : root.children("object")) {
      ++number;
      std::string problem_of_object;
      const char* reason = read_object(object, image, problem_of_object);
      if (reason != nullptr)
        image.lose(reason, fmt::format("{}: object {}{}", where, number, problem_of_object));
    }
    if (root.find_node(is_stray_box))
      image.lose(reason::kNoBox, where + ": a <bndbox> outside <object>");
    if (!root.first_child()) image.lose(reason::kNoBox, where + ": <annotation> is empty");
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
  /// @return the reason why not, or nullptr
  const char* read_object(const pugi::xml_node& node, ForeignImage& image, std::string& problem) {
    const pugi::xml_node box = node.child("bndbox"), rotated = node.child("robndbox"),
                         polygon = node.child("polygon");
    ForeignObject object;
    if (box.next_sibling("bndbox")) {
      problem = ": two <bndbox>; write one <object> for each";
      return reason::kNoBox;
    }
    if (rotated) {
      std::array<double, 4> sides{};
      double angle = 0;
      const char* keys[] = {"cx", "cy", "w", "h"};
      for (size_t k = 0; k < 4; ++k) {
        if (!read_corner(rotated, keys[k], sides[k], problem)) return reason::kNoBox;
      }
      if (!read_corner(rotated, "angle", angle, problem)) return reason::kNoBox;
      object = rotate_box(make_box(sides, BoxForm::kCentre), angle / std::numbers::pi * kHalfTurn,
                          options_.polygons, ledger_);
      is_counted_from_0_ = true;
    } else if (polygon && (options_.polygons || !box)) {
      const Outline points = read_polygon(polygon);
      if (points.size() < 3) return reason::kNoBox;
      object = make_outline(points, options_.polygons, "outlines", ledger_);
    } else if (box) {
      std::array<double, 4> corners{};
      const char* keys[] = {"xmin", "ymin", "xmax", "ymax"};
      for (size_t k = 0; k < 4; ++k) {
        if (!read_corner(box, keys[k], corners[k], problem)) return reason::kNoBox;
      }
      object = make_box(corners, BoxForm::kCorners);
      is_counted_from_0_ = is_counted_from_0_ || corners[0] == 0 || corners[1] == 0;
      if (const double degrees = rotation(node); degrees != 0 && find_bad_corner(object) == nullptr)
        object = rotate_box(object, degrees, options_.polygons, ledger_);
    } else {
      problem = ": it has no <bndbox>";
      return reason::kNoBox;
    }
    object.desc = node.child_value("name");
    if (node.child("difficult").text().as_int() != 0)
      ledger_.note("objects marked difficult, kept");
    image.objects.push_back(std::move(object));
    return nullptr;
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

  /// True for a box that is not inside an <object> of <annotation>.
  static bool is_stray_box(pugi::xml_node node) {
    if (std::string_view(node.name()) != "bndbox") return false;
    while (std::string_view(node.parent().name()) != "annotation") node = node.parent();
    return std::string_view(node.name()) != "object";
  }

  static bool read_corner(const pugi::xml_node& box, const char* key, double& value,
                          std::string& problem) {
    const std::string text = box.child_value(key);
    const std::optional<double> number =
        is_valid_utf8(text) ? parse_number(python_strip(text)) : std::nullopt;
    if (number) {
      value = *number;
      return true;
    }
    problem = text.empty() ? fmt::format(": it has no <{}>", key)
                           : fmt::format(": <{}> is {}, not a number", key, show_json(text));
    return false;
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
  const Layout layout = find_layout(root, options.split, set.ledger);
  VocReader reader(options, set.ledger);
  for (const auto& [split, files] : layout.splits) {
    for (const fs::path& file : files) {
      set.sources.push_back(file.string());
      set.splits[split].push_back(reader.read(file, file.parent_path().string()));
    }
  }
  if (set.is_empty()) refuse_voc(root.string(), set.ledger.summary(0));
  for (auto& [split, images] : set.splits) reader.shift(images);
  return set;
}

}  // namespace rematch
