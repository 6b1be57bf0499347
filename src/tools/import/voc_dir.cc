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

constexpr SourceForm kForm = {.command = "from-voc", .ending = ".xml", .is_per_image = true};

/// Leaves out a file or an object.
[[noreturn]] void refuse(const std::string& what, const char* reason = reason::kDamagedRecord) {
  throw LeftOut{reason, what};
}

/// The annotations of each split that has a list of names in ImageSets/Main, which may contain
/// blanks; empty without lists. A name without XML counts as left out.
SplitFiles read_lists(const std::string& root, ForeignSet& set) {
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
    set.sources.push_back(list.string());
    int number = 0;
    for (const std::string& name : read_lines(list.string())) {
      ++number;
      const fs::path file = folder / (name + ".xml");
      if (fs::exists(file))
        files.push_back(file);
      else if (!name.empty())
        set.ledger.lose_record("a name in a list without an XML",
                               fmt::format("{}:{}: {}", list.string(), number, file.string()));
    }
  }
  return splits;
}

/// The only <annotation> of a document.
pugi::xml_node read_root(const std::string& text, pugi::xml_document& document) {
  const pugi::xml_parse_result parsed = document.load_buffer(
      text.data(), text.size(),
      pugi::parse_default | pugi::parse_declaration | pugi::parse_comments | pugi::parse_pi);
  if (!parsed) refuse(fmt::format("{} (byte {})", parsed.description(), int64_t{parsed.offset}));
  int num_roots = 0;
  for (const pugi::xml_node node : document.children())
    num_roots += node.type() == pugi::node_element;
  const pugi::xml_node root = document.child("annotation");
  if (!root) refuse("it has no <annotation>");
  if (num_roots > 1) refuse("it has two root elements");
  if (!root.first_child()) refuse("<annotation> is empty");
  return root;
}

/// The text of the only child of a name, in one piece; "" without one.
std::string text_of(const pugi::xml_node& node, const char* name) {
  const pugi::xml_node child = node.child(name);
  if (child.next_sibling(name)) refuse(fmt::format("two <{}>", name));
  if (child.first_child() != child.last_child())
    refuse(fmt::format("the text of <{}> is in pieces", name));
  const std::string text = child.child_value();
  if (const size_t at = text.find('&'); at != text.npos && text.find(';', at) != text.npos)
    refuse(fmt::format("<{}> has an entity other than &amp; and the like", name));
  if (!is_valid_utf8(text)) refuse(fmt::format("the text of <{}>", name), reason::kNotUtf8);
  return python_strip(text);
}

/// The number of a child.
double number_of(const pugi::xml_node& node, const char* name) {
  const std::string text = text_of(node, name);
  const std::optional<double> number = parse_number(text);
  if (text.empty()) refuse(fmt::format("it has no <{}>", name));
  if (!number) refuse(fmt::format("<{}> is {}, not a number", name, show_json(text)));
  return *number;
}

Outline points_of(const pugi::xml_node& polygon) {
  Outline points;
  for (int i = 1; polygon.child(fmt::format("x{}", i).c_str()); ++i)
    points.push_back({number_of(polygon, fmt::format("x{}", i).c_str()),
                      number_of(polygon, fmt::format("y{}", i).c_str())});
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

  ForeignImage read(const std::string& path) {
    ForeignImage image = image_of_file(path);
    pugi::xml_document document;
    read_annotation(read_root(read_file(path), document), image);
    return image;
  }

  /// Pixels are counted from 1 unless a box begins at 0, and the last pixel belongs to the box.
  void shift(ForeignSet& set) const {
    for (auto& [split, images] : set.splits) {
      for (ForeignImage& image : images) {
        for (ForeignObject& object : image.objects) {
          if (is_counted_from_0_ || !object.ring.empty()) continue;
          --object.x0;
          --object.y0;
        }
      }
    }
  }

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
      ForeignEntry entry{.place = fmt::format("{}: object {}", image.where, ++number)};
      try {
        read_object(object, entry);
      } catch (const LeftOut& problem) {
        entry.reason = problem.reason == reason::kNotUtf8 ? problem.reason : reason::kNoBox;
        entry.place += ": " + problem.what;
      }
      image.add(entry, options_, ledger_);
    }
    if (const pugi::xml_node stray = root.find_node(is_stray))
      image.lose(reason::kNoBox,
                 fmt::format("{}: a <{}> outside <object>", image.where, stray.name()));
  }

  /// @throws LeftOut
  void read_object(const pugi::xml_node& node, ForeignEntry& entry) {
    const pugi::xml_node box = node.child("bndbox"), polygon = node.child("polygon");
    for (const pugi::xml_node each : {box, polygon}) {
      if (each.next_sibling(each.name()))
        refuse(fmt::format("two <{}>; write one <object> for each", each.name()));
    }
    bool is_rotated = node.child("robndbox");
    for (const pugi::xml_node attribute : node.child("attributes").children())  // CVAT
      is_rotated = is_rotated || (text_of(attribute, "name") == "rotation" &&
                                  parse_number(text_of(attribute, "value")).value_or(1) != 0);
    if (is_rotated) refuse("a rotated box; draw an outline");
    if (!box && !polygon) refuse("it has no <bndbox>");
    entry.name = text_of(node, "name");
    if (polygon) entry.rings = {points_of(polygon)};
    if (box) {
      entry.box = {number_of(box, "xmin"), number_of(box, "ymin"), number_of(box, "xmax"),
                   number_of(box, "ymax")};
      is_counted_from_0_ = is_counted_from_0_ || (*entry.box)[0] == 0 || (*entry.box)[1] == 0;
    }
    if (text_of(node, "difficult") == "1") ledger_.note("objects marked difficult, kept");
  }

  const ImportOptions& options_;
  Ledger& ledger_;
  bool is_counted_from_0_ = false;
};

}  // namespace

ForeignSet read_voc_dir(const std::string& directory, const ImportOptions& options) {
  ForeignSet set;
  VocReader reader(options, set.ledger);
  SplitFiles files = read_lists(directory, set);
  if (files.empty()) files = find_files({directory}, kForm, options);
  read_files(files, kForm, set, [&](const std::string& path, std::vector<ForeignImage>& images) {
    images.push_back(reader.read(path));
  });
  reader.shift(set);
  return set;
}

}  // namespace rematch
