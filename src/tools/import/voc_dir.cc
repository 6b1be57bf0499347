#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>

#include "base/file.h"
#include "base/text.h"
#include "learn/data/image_files.h"
#include "tools/import/foreign.h"
#include "tools/import/geometry.h"
#include "tools/import/reasons.h"
#include "tools/import/source_files.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCommand = "from-voc";

/// Thrown for a file or an object that cannot be read.
struct Unreadable {
  std::string what;
};

/// The annotations of each split that has a list of names in ImageSets/Main, which may contain
/// blanks; empty without lists. A name without XML counts as left out.
SplitFiles read_lists(const std::string& root, Ledger& ledger) {
  constexpr const char* kLists[] = {"train.txt", "trainval.txt", "val.txt", "valid.txt",
                                    "test.txt"};
  SplitFiles splits;
  for (const fs::path& list : list_files(root, [&](const fs::path& path) {
         return path.parent_path().filename() == "Main" && is_among(path.filename(), kLists);
       })) {
    const fs::path main = list.parent_path(),
                   folder = find_folder(main.parent_path().parent_path(), kAnnotationFolders);
    const bool is_both = list.stem() == "trainval";  // stands for a missing train.txt
    if (folder.empty() || (is_both && fs::exists(main / "train.txt"))) continue;
    std::vector<fs::path>& files = splits[is_both ? "train" : find_split_word(list.stem())];
    int number = 0;
    for (const std::string& line : read_lines(list.string())) {
      ++number;
      const std::string name = is_valid_utf8(line) ? python_strip(line) : line;
      const fs::path file = folder / (name + ".xml");
      if (fs::exists(file))
        files.push_back(file);
      else if (!name.empty())
        ledger.lose_record("a name in a list without an XML",
                           fmt::format("{}:{}: {}", list.string(), number, file.string()));
    }
  }
  return splits;
}

/// The only <annotation> of a document.
/// @throws Unreadable
pugi::xml_node read_root(const std::string& text, pugi::xml_document& document) {
  constexpr const char* kEncodings[] = {"",           "utf-8",  "utf8",  "utf-16",
                                        "iso-8859-1", "latin1", "ascii", "us-ascii"};
  const pugi::xml_parse_result parsed = document.load_buffer(
      text.data(), text.size(),
      pugi::parse_default | pugi::parse_declaration | pugi::parse_comments | pugi::parse_pi);
  if (!parsed)
    throw Unreadable{fmt::format("{} (byte {})", parsed.description(), int64_t{parsed.offset})};
  int num_roots = 0;
  for (const pugi::xml_node node : document.children()) {
    num_roots += node.type() == pugi::node_element;
    const std::string encoding = node.attribute("encoding").value();
    if (node.type() == pugi::node_declaration && !is_among(encoding, kEncodings))
      throw Unreadable{fmt::format("its encoding is {0}: iconv -f {0} -t UTF-8 FILE", encoding)};
  }
  const pugi::xml_node root = document.child("annotation");
  if (!root) throw Unreadable{"it has no <annotation>"};
  if (num_roots > 1) throw Unreadable{"it has two root elements"};
  if (!root.first_child()) throw Unreadable{"<annotation> is empty"};
  return root;
}

/// The text of the only child of a name; "" without one.
/// @throws Unreadable for two, or for a text in pieces
std::string text_of(const pugi::xml_node& node, const char* name) {
  const pugi::xml_node child = node.child(name);
  if (child.next_sibling(name)) throw Unreadable{fmt::format("two <{}>", name)};
  if (child.first_child() != child.last_child())
    throw Unreadable{fmt::format("the text of <{}> is in pieces", name)};
  const std::string text = child.child_value();
  if (const size_t at = text.find('&'); at != text.npos && text.find(';', at) != text.npos)
    throw Unreadable{fmt::format("<{}> has an entity other than &amp; and the like", name)};
  return is_valid_utf8(text) ? python_strip(text) : text;
}

/// The numbers of a box.
/// @throws Unreadable
std::array<double, 4> numbers_of(const pugi::xml_node& box,
                                 const std::array<const char*, 4>& keys) {
  std::array<double, 4> values{};
  for (size_t i = 0; i < 4; ++i) {
    const std::string text = text_of(box, keys[i]);
    const std::optional<double> number = parse_number(text);
    if (!number)
      throw Unreadable{text.empty()
                           ? fmt::format("it has no <{}>", keys[i])
                           : fmt::format("<{}> is {}, not a number", keys[i], show_json(text))};
    values[i] = *number;
  }
  return values;
}

Outline points_of(const pugi::xml_node& polygon) {
  Outline points;
  for (int i = 1;; ++i) {
    const auto x = parse_number(text_of(polygon, fmt::format("x{}", i).c_str())),
               y = parse_number(text_of(polygon, fmt::format("y{}", i).c_str()));
    if (!x || !y) break;
    points.push_back({*x, *y});
  }
  if (points.size() < 3) throw Unreadable{"a <polygon> of fewer than three points"};
  return points;
}

/// True for a box, an outline or an object of another layout, not inside an <object> of
/// <annotation>.
bool is_stray(pugi::xml_node node) {
  constexpr const char* kGeometries[] = {"bndbox", "robndbox", "polygon", "points",
                                         "object", "objects",  "box"};
  if (!is_among(node.name(), kGeometries)) return false;
  while (std::string_view(node.parent().name()) != "annotation") node = node.parent();
  return std::string_view(node.name()) != "object";
}

/// Reads the annotations of a data set.
class VocReader {
 public:
  VocReader(const ImportOptions& options, Ledger& ledger) : options_(options), ledger_(ledger) {}

  ForeignImage read(const fs::path& path) {
    ForeignImage image = image_of_file(path);
    pugi::xml_document document;
    try {
      read_annotation(read_root(read_file(path.string()), document), image);
    } catch (const Unreadable& problem) {
      image.leave_out("an XML that cannot be read", image.where + ": " + problem.what);
    }
    has_annotation_ = has_annotation_ || document.child("annotation");
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

  bool has_annotation() const { return has_annotation_; }

 private:
  void read_annotation(const pugi::xml_node& root, ForeignImage& image) {
    if (const std::string name = text_of(root, "filename"); !name.empty()) image.name = name;
    const std::string database = text_of(root.child("source"), "database");
    if (database.find("roboflow") != database.npos || database == "Label Studio" ||
        text_of(root.child("owner"), "name") == "Label Studio")
      is_counted_from_0_ = true;
    for (const pugi::xml_node size : root.children("size"))
      image.state_size(parse_number(text_of(size, "width")), parse_number(text_of(size, "height")));
    int number = 0;
    for (const pugi::xml_node object : root.children("object")) {
      ++number;
      try {
        image.objects.push_back(read_object(object));
      } catch (const Unreadable& problem) {
        image.lose(reason::kNoBox,
                   fmt::format("{}: object {}: {}", image.where, number, problem.what));
      }
    }
    if (const pugi::xml_node stray = root.find_node(is_stray))
      image.lose(reason::kNoBox,
                 fmt::format("{}: a <{}> outside <object>", image.where, stray.name()));
  }

  /// @throws Unreadable
  ForeignObject read_object(const pugi::xml_node& node) {
    const pugi::xml_node box = node.child("bndbox"), polygon = node.child("polygon");
    for (const pugi::xml_node each : {box, polygon}) {
      if (each.next_sibling(each.name()))
        throw Unreadable{fmt::format("two <{}>; write one <object> for each", each.name())};
    }
    bool is_rotated = node.child("robndbox");
    for (const pugi::xml_node attribute : node.child("attributes").children())  // CVAT
      is_rotated = is_rotated || (text_of(attribute, "name") == "rotation" &&
                                  parse_number(text_of(attribute, "value")).value_or(1) != 0);
    if (is_rotated) throw Unreadable{"a rotated box; draw an outline"};
    ForeignObject object;
    if (polygon && (options_.polygons || !box)) {
      object = make_outline(points_of(polygon), options_.polygons, ledger_);
    } else if (box) {
      object = make_box(numbers_of(box, {"xmin", "ymin", "xmax", "ymax"}), BoxForm::kCorners);
      is_counted_from_0_ = is_counted_from_0_ || object.x0 == 0 || object.y0 == 0;
    } else {
      throw Unreadable{"it has no <bndbox>"};
    }
    object.desc = text_of(node, "name");
    if (text_of(node, "difficult") == "1") ledger_.note("objects marked difficult, kept");
    return object;
  }

  const ImportOptions& options_;
  Ledger& ledger_;
  bool is_counted_from_0_ = false, has_annotation_ = false;
};

}  // namespace

ForeignSet read_voc_dir(const std::string& directory, const ImportOptions& options) {
  ForeignSet set;
  VocReader reader(options, set.ledger);
  SplitFiles splits = read_lists(directory, set.ledger);
  if (splits.empty()) splits = find_annotations(directory, kCommand, ".xml", options.split);
  for (const auto& [split, files] : splits) {
    for (const fs::path& file : files) {
      set.sources.push_back(file.string());
      set.splits[split].push_back(reader.read(file));
    }
  }
  if (set.is_empty())
    refuse_source(kCommand, directory, "the lists in ImageSets/Main name none of its XML files");
  if (!reader.has_annotation())
    refuse_source(kCommand, set.sources.front(), set.splits.begin()->second.front().defect->place);
  for (auto& [split, images] : set.splits) reader.shift(images);
  return set;
}

}  // namespace rematch
