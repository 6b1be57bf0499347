#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "tools/import/class_names.h"
#include "tools/import/csv_table.h"
#include "tools/import/directory_format.h"
#include "tools/import/foreign.h"
#include "tools/import/geometry.h"
#include "tools/import/reasons.h"
#include "tools/import/source_files.h"

namespace rematch {
namespace {

constexpr const char* kError = "this is not a CSV with boxes";

/// Reads one CSV into a split.
class CsvReader {
 public:
  CsvReader(const std::string& path, const CsvColumns& columns, const ImportOptions& options,
            ForeignSet& set)
      : path_(path),
        columns_(columns),
        options_(options),
        ledger_(set.ledger),
        names_(read_class_names(options.names)),
        images_(set.splits[options.split_name(path)]) {}

  void read(const std::vector<CsvRow>& rows) {
    for (size_t i = columns_.has_header ? 1 : 0; i < rows.size(); ++i) read_row(rows[i]);
  }

 private:
  static std::string cell(const CsvRow& row, int column) {
    return column >= 0 && static_cast<size_t>(column) < row.cells.size()
               ? row.cells[static_cast<size_t>(column)]
               : std::string();
  }

  ForeignImage& image_of(const CsvRow& row, const std::string& name, const std::string& place) {
    const auto [known, is_new] = by_name_.try_emplace(name, images_.size());
    if (!is_new) return images_[known->second];
    const auto side = [&](int column) {
      const std::optional<double> number = parse_number(cell(row, column));
      return number && *number >= 1 && *number < 1e6 ? static_cast<int>(*number) : 0;
    };
    return images_.emplace_back(
        ForeignImage{.name = name,
                     .directory = std::filesystem::path(path_).parent_path().string(),
                     .where = place,
                     .width_px = side(columns_.width),
                     .height_px = side(columns_.height),
                     .unit = columns_.is_normalized ? CoordUnit::kShares : CoordUnit::kPixels,
                     // of other classes OpenImages says nothing here
                     .absent = columns_.is_normalized ? std::optional(std::vector<std::string>())
                                                      : std::nullopt});
  }

  /// The four numbers of a row.
  /// @param is_blank  receives true if all cells are empty
  std::optional<std::array<double, 4>> read_box(const CsvRow& row, bool& is_blank) const {
    is_blank = true;
    if (columns_.box_text >= 0) {
      const std::string text = cell(row, columns_.box_text);
      is_blank = text.empty();
      try {
        return is_blank ? std::nullopt : read_four(parse_json(text, ""));
      } catch (const UserError&) {
        return std::nullopt;
      }
    }
    std::array<double, 4> box{};
    bool is_whole = true;
    for (size_t k = 0; k < 4; ++k) {
      const std::string text = cell(row, columns_.box[k]);
      const std::optional<double> number = parse_number(text);
      is_blank = is_blank && text.empty();
      is_whole = is_whole && number.has_value();
      box[k] = number.value_or(0);
    }
    return is_whole ? std::optional(box) : std::nullopt;
  }

  /// The name of a row's class; nullopt for an id without a name.
  std::optional<std::string> class_name(const CsvRow& row) const {
    const std::string text = cell(row, columns_.name);
    if (const auto known = names_.find(text); known != names_.end()) return known->second;
    const bool is_id = names_.empty() ? text.starts_with("/m/")  // OpenImages
                                      : columns_.is_normalized || parse_number(text).has_value();
    return is_id ? std::nullopt : std::optional(text);
  }

  void read_row(const CsvRow& row) {
    const std::string place = fmt::format("{}:{}", path_, row.line);
    const std::string name = cell(row, columns_.image);
    if (name.empty()) return ledger_.lose_record("a row without an image", place);
    ForeignImage& image = image_of(row, name, place);
    bool is_blank = false;
    const std::optional<std::array<double, 4>> box = read_box(row, is_blank);
    if (is_blank && cell(row, columns_.name).empty()) return;  // the image shows nothing
    if (!box) return image.lose(reason::kNoBox, place);
    if (const std::string crowd = cell(row, columns_.crowd); crowd == "1" || crowd == "true")
      return image.skip_crowd(class_name(row).value_or(""), ledger_);
    if (parse_number(cell(row, columns_.angle)).value_or(0) != 0)
      return image.lose("a rotated box: its row has an angle", place);
    ForeignObject object = make_box(*box, options_.boxes.value_or(columns_.form));
    const std::optional<std::string> class_of = class_name(row);
    if (!class_of)
      return image.lose(reason::kUnknownClass, place + ": " + cell(row, columns_.name));
    object.desc = *class_of;
    image.objects.push_back(std::move(object));
  }

  const std::string& path_;
  const CsvColumns& columns_;
  const ImportOptions& options_;
  Ledger& ledger_;
  std::map<std::string, std::string> names_;
  std::vector<ForeignImage>& images_;
  std::unordered_map<std::string, size_t> by_name_;
};

}  // namespace

ForeignSet read_csv_files(const std::vector<std::string>& paths, const ImportOptions& options) {
  check_one_file_per_split(paths, options);
  ForeignSet set{.sources = paths};
  for (const std::string& path : paths) {
    const std::string bytes = read_file(path);
    refuse_other_format(path, bytes, "from-csv", kError);
    const std::vector<CsvRow> rows = read_csv(bytes, path);
    const std::optional<CsvColumns> columns = find_csv_columns(rows);
    if (!columns)
      throw UserError(
          ErrorKind::kData,
          {.error = kError,
           .where = path,
           .what = rows.empty() ? "it has no rows"
                                : fmt::format("its columns are {}", join(rows.front().cells, ", ")),
           .fix = "name the columns filename, xmin, ymin, xmax, ymax, class (or x, y, width, "
                  "height); of four corners write the box around them"});
    CsvReader(path, *columns, options, set).read(rows);
    if (columns->form == BoxForm::kSides) set.assumed_form = columns->form;
  }
  return set;
}

}  // namespace rematch
