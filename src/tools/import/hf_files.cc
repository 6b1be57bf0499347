#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "tools/import/directory_format.h"
#include "tools/import/foreign.h"
#include "tools/import/geometry.h"
#include "tools/import/image_files.h"
#include "tools/import/json_value.h"
#include "tools/import/reasons.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFix =
    "write {\"file_name\": \"a.jpg\", \"objects\": {\"bbox\": [[x, y, width, height]], "
    "\"category\": [\"cat\"]}}";

/// Reads one metadata.jsonl into a split.
class HfReader {
 public:
  HfReader(const std::string& path, const ImportOptions& options, ForeignSet& set)
      : path_(path),
        options_(options),
        ledger_(set.ledger),
        names_(read_class_names(options.names)),
        images_(set.splits[options.split_name(path)]) {}

  void read() {
    read_json_records(
        path_, read_file(path_),
        [this](const Json& record, const std::string& where) { add(record, where); },
        [this](const std::string& where, const std::string& what) {
          ledger_.lose_record(reason::kDamagedRecord, where + ": " + what);
        });
  }

 private:
  static std::string file_name(const Json& record) {
    const Json* name =
        find_member(record, {"file_name", "image", "image_path", "path", "filename"});
    if (name != nullptr && name->is_object()) name = find_member(*name, {"path", "file_name"});
    return name != nullptr && name->is_string() ? name->get<std::string>() : "";
  }

  void add(const Json& record, const std::string& where) {
    ForeignImage image{.name = file_name(record),
                       .directory = ImportOptions::directory_of(path_),
                       .stem = "",
                       .where = where,
                       .width_px = read_side_px(find_member(record, "width")),
                       .height_px = read_side_px(find_member(record, "height"))};
    const Json* objects = find_member(record, "objects");
    if (image.name.empty() || objects == nullptr || (!objects->is_object() && !objects->is_array()))
      return ledger_.lose_record(reason::kDamagedRecord,
                                 fmt::format("{}: it has no {}", where,
                                             image.name.empty() ? "\"file_name\"" : "\"objects\""));
    if (objects->is_array()) {
      for (const Json& entry : *objects) {
        if (!skip_crowd(crowd_of(entry)))
          add_object(find_member(entry, {"bbox", "box", "boxes"}), name_of(entry), image);
      }
      lose_crowds_only(!objects->empty(), image);
    } else if (!add_columns(*objects, image)) {
      return ledger_.lose_record(reason::kNotPaired, where);
    }
    images_.push_back(std::move(image));
  }

  static const Json* name_of(const Json& entry) {
    return find_member(entry, {"category", "categories", "label", "labels", "name", "class",
                               "category_id", "classes"});
  }

  static const Json* crowd_of(const Json& objects) {
    return find_member(objects, {"iscrowd", "is_crowd"});
  }

  /// Counts a crowd. @return false for an object
  bool skip_crowd(const Json* flag) {
    if (flag == nullptr || (*flag != 1 && *flag != true)) return false;
    ledger_.note("crowds, which are no objects");
    return true;
  }

  static void lose_crowds_only(bool has_entries, ForeignImage& image) {
    if (has_entries && image.objects.empty() && image.lost.empty())
      image.lose(reason::kCrowdsOnly, image.where);
  }

  /// Reads lists of boxes and names.
  /// @return false if their lengths differ
  bool add_columns(const Json& objects, ForeignImage& image) {
    const Json* boxes = find_member(objects, {"bbox", "bboxes", "boxes", "box"});
    const Json* names = name_of(objects);
    if (boxes == nullptr || !boxes->is_array()) return false;
    if (names != nullptr && (!names->is_array() || names->size() != boxes->size())) return false;
    const Json* crowds = crowd_of(objects);
    for (size_t i = 0; i < boxes->size(); ++i) {
      const bool has_flag = crowds != nullptr && crowds->is_array() && i < crowds->size();
      if (!skip_crowd(has_flag ? &(*crowds)[i] : nullptr))
        add_object(&(*boxes)[i], names == nullptr ? nullptr : &(*names)[i], image);
    }
    lose_crowds_only(!boxes->empty(), image);
    return true;
  }

  void add_object(const Json* box, const Json* name, ForeignImage& image) {
    const std::string place =
        fmt::format("{}: object {}", image.where, image.objects.size() + image.lost.size() + 1);
    const std::optional<std::array<double, 4>> numbers =
        box == nullptr ? std::nullopt : read_four(*box);
    if (!numbers) return image.lose(reason::kNoBox, place);
    ForeignObject object = make_box(*numbers, options_.boxes.value_or(BoxForm::kSides));
    if (const std::optional<std::string> id = read_id(name)) {
      const auto known = names_.find(*id);
      if (known != names_.end()) {
        object.desc = known->second;
      } else if (name->is_string()) {
        object.desc = *id;
      } else {
        return image.lose(reason::kUnknownClass, place + ": category " + *id);
      }
    }
    image.objects.push_back(std::move(object));
  }

  const std::string& path_;
  const ImportOptions& options_;
  Ledger& ledger_;
  std::map<std::string, std::string> names_;
  std::vector<ForeignImage>& images_;
};

/// The files of a directory: metadata.jsonl in it, or in its folders of splits.
std::vector<std::string> files_of(const std::string& directory, const std::string& split) {
  std::vector<std::string> files;
  for (const auto& [name, found] : list_annotations(directory, ".jsonl", split)) {
    for (const fs::path& file : found) files.push_back(file.string());
  }
  if (!files.empty()) return files;
  throw UserError(ErrorKind::kData,
                  {.error = "this is not a directory of Hugging Face's imagefolder",
                   .where = directory,
                   .what = "there is no metadata.jsonl in it or in folders train, validation and "
                           "test",
                   .fix = import_fix(directory, "from-hf", kFix)});
}

}  // namespace

ForeignSet read_hf_files(const std::vector<std::string>& sources, const ImportOptions& options) {
  std::vector<std::string> paths;
  for (const std::string& source : sources) {
    const bool is_directory = fs::is_directory(source);
    const std::vector<std::string> files =
        is_directory ? files_of(source, options.split) : std::vector<std::string>{source};
    paths.insert(paths.end(), files.begin(), files.end());
  }
  check_one_file_per_split(paths, options);
  ForeignSet set{.sources = paths, .may_be_corners = true};
  for (const auto& [id, name] : read_class_names(options.names)) set.classes.push_back(name);
  for (const std::string& path : paths) {
    const std::string bytes = read_file(path);
    if (bytes.find("\"objects\"") == bytes.npos || bytes.find("\"messages\"") != bytes.npos)
      refuse_other_format(path, bytes, "from-hf", "this is no metadata.jsonl with boxes");
    HfReader(path, options, set).read();
  }
  if (!set.is_empty()) return set;
  const std::vector<std::string> places = set.ledger.places();
  throw UserError(ErrorKind::kData,
                  {.error = "no record has boxes",
                   .where = places.empty() ? paths.front() : places.front(),
                   .what = places.empty() ? "the file has no records" : set.ledger.summary(0),
                   .fix = std::string(kFix) + "; nothing has been written"});
}

}  // namespace rematch
