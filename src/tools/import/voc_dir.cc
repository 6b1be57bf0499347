#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "tools/import/image_files.h"
#include "tools/import/source_files.h"
#include "tools/import/voc_xml.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMarks[] = {"ignore",     "iscrowd",  "difficult", "score",
                                  "confidence", "rotation", "angle"};
constexpr SourceForm kForm = {.command = "from-voc", .ending = ".xml", .is_per_image = true};

/// The annotations of each split that has a list of names in ImageSets/Main, which may contain
/// blanks; empty without lists. A name without XML counts as left out.
SplitFiles read_lists(const std::string& root, ForeignSet& set) {
  constexpr const char* kLists[] = {"train.txt", "trainval.txt", "val.txt", "valid.txt",
                                    "test.txt"};
  SplitFiles splits;
  std::set<fs::path> folders, named;
  for (const fs::path& list : list_files(root, [&](const fs::path& path) {
         return path.parent_path().filename() == "Main" && is_among(path.filename(), kLists);
       })) {
    const fs::path main = list.parent_path(),
                   folder = find_folder(main.parent_path().parent_path(), kAnnotationFolders);
    const bool is_both = list.stem() == "trainval";  // stands for a missing train.txt
    if (folder.empty() || (is_both && path_exists(main / "train.txt"))) continue;
    Paths& files = splits[is_both ? "train" : find_split_word(list.stem())];
    set.sources.push_back(list);
    folders.insert(folder);
    int number = 0;
    for (const std::string& name : read_lines(list)) {
      ++number;
      const fs::path file = folder / (name + ".xml");
      if (path_exists(file))
        files.push_back(*named.insert(file).first);
      else if (!name.empty())
        set.ledger.lose_record("a name in a list without an XML",
                               fmt::format("{}:{}: {}", list.string(), number, file.string()));
    }
  }
  for (const fs::path& folder : folders) {
    for (const fs::path& file :
         list_files(folder, [](const fs::path& path) { return path.extension() == ".xml"; })) {
      if (!named.contains(file))
        set.ledger.note("annotations that no list of ImageSets names, left out");
    }
  }
  return splits;
}

/// Reads the annotations of a data set.
class VocReader {
 public:
  void read(const std::string& path, ForeignSet& set, ForeignImages& images) {
    pugi::xml_document document;
    const pugi::xml_node root = read_annotation_root(read_file(path), document);
    ForeignImage image = image_of_file(path);
    read_annotation(root, image, set);
    images.push_back(std::move(image));
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
  void read_annotation(const pugi::xml_node& root, ForeignImage& image, ForeignSet& set) {
    if (const std::string name = child_text(root, "filename"); !name.empty()) image.name = name;
    const std::string database = child_text(root.child("source"), "database");
    if (database.find("roboflow") != database.npos || database == "Label Studio" ||
        child_text(root.child("owner"), "name") == "Label Studio")
      is_counted_from_0_ = true;
    for (const pugi::xml_node size : root.children("size"))
      image.state_size(child_text(size, "width"), child_text(size, "height"));
    int number = 0;
    for (const pugi::xml_node object : root.children("object")) {
      ForeignEntry entry{.place = fmt::format("{}: object {}", image.where, ++number)};
      try {
        read_object(object, entry, set.ledger);
      } catch (const LeftOut& problem) {
        entry.reason = problem.reason == reason::kDamagedRecord ? reason::kNoBox : problem.reason;
        entry.place += ": " + problem.what;
      }
      image.add(entry, set);
    }
    if (const pugi::xml_node stray = root.find_node(is_stray_geometry))
      image.lose(reason::kNoBox,
                 fmt::format("{}: {} is out of place", image.where,
                             *stray.name() == '\0' ? "text" : fmt::format("<{}>", stray.name())));
  }

  /// @throws LeftOut
  void read_object(const pugi::xml_node& node, ForeignEntry& entry, Ledger& ledger) {
    const pugi::xml_node box = only_child(node, "bndbox"), polygon = only_child(node, "polygon");
    if (node.child("robndbox")) refuse_xml("<robndbox>", reason::kRotated);
    if (!box && !polygon) refuse_xml("it has no <bndbox>");
    entry.name = child_text(node, "name", reason::kBadName);
    if (polygon) entry.rings = {polygon_points(polygon)};
    if (box) {
      entry.box = {child_number(box, "xmin"), child_number(box, "ymin"), child_number(box, "xmax"),
                   child_number(box, "ymax")};
      is_counted_from_0_ = is_counted_from_0_ || (*entry.box)[0] == 0 || (*entry.box)[1] == 0;
    }
    for ([[maybe_unused]] const auto part : node.children("part"))
      ledger.note("parts of objects (<part>), left out");
    Json marks;
    for (const char* mark : kMarks) marks[mark] = child_text(node, mark);
    for (const pugi::xml_node attribute : node.child("attributes").children())  // CVAT
      marks["attributes"][child_text(attribute, "name")] = child_text(attribute, "value");
    read_marks(marks, entry, ledger);
  }

  bool is_counted_from_0_ = false;
};

}  // namespace

ForeignSet read_voc_dir(const Strings& directory, const ImportOptions& options) {
  ForeignSet set{.options = options};
  const SplitFiles lists = read_lists(directory.front(), set);
  VocReader reader;
  const auto read = [&](const auto& path, auto& set, auto& images) {
    reader.read(path, set, images);
  };
  set = read_sources(directory, kForm, std::move(set), read, lists);
  reader.shift(set);
  return set;
}

}  // namespace rematch
