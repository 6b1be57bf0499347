#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "learn/data/image_files.h"
#include "tools/import/class_names.h"
#include "tools/import/csv_table.h"
#include "tools/import/foreign.h"
#include "tools/import/forms.h"
#include "tools/import/geometry.h"
#include "tools/import/reasons.h"
#include "tools/import/source_files.h"

namespace rematch {
namespace {

using Names = std::vector<std::string>;

constexpr const char* kCommand = "from-csv";

/// Names of the four columns of a box, and their meaning. The first row that fits counts.
struct BoxNames {
  Names names[4];
  BoxForm form;
};
const BoxNames kBoxNames[] = {
    {{{"xmin", "x1", "bboxx1", "bboxxmin", "minx"},
      {"ymin", "y1", "bboxy1", "bboxymin", "miny"},
      {"xmax", "x2", "bboxx2", "bboxxmax", "maxx"},
      {"ymax", "y2", "bboxy2", "bboxymax", "maxy"}},
     BoxForm::kCorners},
    {{{"x0"}, {"y0"}, {"x1"}, {"y1"}}, BoxForm::kCorners},
    {{{"left"}, {"top"}, {"right"}, {"bottom"}}, BoxForm::kCorners},
    {{{"bboxx", "boxx", "left", "bboxleft", "x"},
      {"bboxy", "boxy", "top", "bboxtop", "y"},
      {"bboxwidth", "bboxw", "boxwidth", "boxw", "w", "width"},
      {"bboxheight", "bboxh", "boxheight", "boxh", "h", "height"}},
     BoxForm::kSides},
    {{{"xcenter", "xcentre", "cx", "centerx"},
      {"ycenter", "ycentre", "cy", "centery"},
      {"bboxwidth", "boxwidth", "w", "width"},
      {"bboxheight", "boxheight", "h", "height"}},
     BoxForm::kCentre},
};

/// Lower case without anything but letters and digits: "X_Min" and "xmin" are one.
std::string plain(const std::string& text) {
  std::string result = lower_case(text);
  std::erase_if(result, [](unsigned char c) { return std::isalnum(c) == 0; });
  return result;
}

int find_column(const Names& header, const Names& wanted) {
  for (const std::string& name : wanted) {
    const auto found = std::find(header.begin(), header.end(), name);
    if (found != header.end()) return static_cast<int>(found - header.begin());
  }
  return -1;
}

/// Which columns of a CSV have what; -1 for a column that is not there.
struct Columns {
  int image = -1, name = -1, width = -1, height = -1, crowd = -1;
  int angle = -1;                          ///< of a rotated box, which is not read
  std::array<int, 4> box{-1, -1, -1, -1};  ///< in the order of `form`
  int box_text = -1;                       ///< one cell with four numbers
  BoxForm form = BoxForm::kCorners;
  bool is_normalized = false;  ///< OpenImages: XMin … are shares of the sides
  bool has_header = true;
};

/// Path, four numbers or nothing, class: RetinaNet's rows, which have no header.
bool is_retinanet(const Names& cells) {
  return cells.size() == 6 && is_image_name(cells[0]) &&
         std::all_of(cells.begin() + 1, cells.begin() + 5, [](const std::string& cell) {
           return cell.empty() || parse_number(cell).has_value();
         });
}

/// @return false if the header has no columns of a box
bool find_box(const Names& header, Columns& columns) {
  if (find_column(header, {"x3"}) >= 0 && find_column(header, {"y3"}) >= 0) return false;
  for (const BoxNames& row : kBoxNames) {
    for (size_t k = 0; k < 4; ++k) columns.box[k] = find_column(header, row.names[k]);
    columns.form = row.form;
    if (*std::min_element(columns.box.begin(), columns.box.end()) >= 0) return true;
  }
  columns.box.fill(-1);
  columns.box_text = find_column(header, {"bbox", "box", "bndbox"});
  columns.form = BoxForm::kSides;
  return columns.box_text >= 0;
}

/// Finds the columns by the names of the first row (TensorFlow, OpenImages, DeepForest, Kaggle, …).
/// @throws UserError (data)
Columns find_columns(const std::vector<CsvRow>& rows, const std::string& path) {
  if (rows.empty()) refuse_source(kCommand, path, "it has no rows");
  if (is_retinanet(rows.front().cells))
    return {.image = 0, .name = 5, .box = {1, 2, 3, 4}, .has_header = false};
  Names header;
  for (const std::string& cell : rows.front().cells) {
    header.push_back(plain(cell));
    if (!header.back().empty() && find_column(header, {header.back()}) + 1 < std::ssize(header))
      refuse_source(kCommand, path, fmt::format("it has the column \"{}\" twice", cell),
                    "remove one of them");
  }
  Columns columns;
  columns.image =
      find_column(header, {"filename", "imagefilename", "imagepath", "filepath", "imagename",
                           "imgpath", "path", "file", "image", "img", "imageid", "id"});
  columns.name =
      find_column(header, {"classname", "labelname", "categoryname", "class", "label", "name",
                           "category", "labels", "object", "species", "classid"});
  columns.crowd = find_column(header, {"isgroupof", "iscrowd"});
  columns.angle = find_column(header, {"angle", "rotation", "theta"});
  if (columns.image < 0 || !find_box(header, columns))
    refuse_source(kCommand, path, fmt::format("its columns are {}", join(rows.front().cells, ", ")),
                  "name the columns filename, xmin, ymin, xmax, ymax, class (or x, y, width, "
                  "height); of four corners write the box around them");
  columns.width = find_column(header, {"imagewidth", "imgwidth", "width"});
  columns.height = find_column(header, {"imageheight", "imgheight", "height"});
  if (std::find(columns.box.begin(), columns.box.end(), columns.width) != columns.box.end())
    columns.width = columns.height = -1;
  columns.is_normalized = find_column(header, {"imageid"}) == columns.image &&
                          find_column(header, {"labelname"}) == columns.name && columns.name >= 0;
  return columns;
}

/// Reads one CSV into a split.
class CsvReader {
 public:
  CsvReader(const std::string& path, const Columns& columns, const ImportOptions& options,
            ForeignSet& set)
      : path_(path),
        columns_(columns),
        options_(options),
        ledger_(set.ledger),
        names_(options.names),
        images_(set.splits[options.split_name(path)]) {}

  void read_row(const CsvRow& row) {
    const std::string place = fmt::format("{}:{}", path_, row.line),
                      name = cell(row, columns_.image), written = cell(row, columns_.name);
    if (name.empty()) return ledger_.lose_record("a row without an image", place);
    ForeignImage& image = image_of(name, place);
    image.state_size(parse_number(cell(row, columns_.width)),
                     parse_number(cell(row, columns_.height)));
    bool is_blank = true;
    const std::optional<std::array<double, 4>> box = read_box(row, is_blank);
    if (is_blank && written.empty()) return;  // the image shows nothing
    if (!box) return image.lose(reason::kNoBox, place);
    const bool is_id = names_.is_empty()
                           ? written.starts_with("/m/")  // OpenImages
                           : columns_.is_normalized || parse_number(written).has_value();
    const std::optional<std::string> class_of = names_.find(written, is_id);
    if (const std::string crowd = lower_case(cell(row, columns_.crowd));
        crowd == "1" || crowd == "true")
      return image.skip_crowd(class_of.value_or(""), ledger_);
    if (parse_number(cell(row, columns_.angle)).value_or(0) != 0)
      return image.lose("a rotated box: its row has an angle", place);
    if (!class_of) return image.lose(reason::kUnknownClass, place + ": " + written);
    ForeignObject object = make_box(*box, options_.boxes.value_or(columns_.form));
    object.desc = *class_of;
    image.objects.push_back(std::move(object));
  }

 private:
  static std::string cell(const CsvRow& row, int column) {
    return column >= 0 && static_cast<size_t>(column) < row.cells.size()
               ? row.cells[static_cast<size_t>(column)]
               : std::string();
  }

  ForeignImage& image_of(const std::string& name, const std::string& place) {
    const auto [known, is_new] = by_name_.try_emplace(name, images_.size());
    if (!is_new) return images_[known->second];
    ForeignImage& image = images_.emplace_back(
        ForeignImage{.name = name,
                     .directory = std::filesystem::path(path_).parent_path().string(),
                     .where = place});
    if (columns_.is_normalized) {
      image.unit = CoordUnit::kShares;
      image.absent = std::vector<std::string>();  // of other classes OpenImages says nothing
    }
    return image;
  }

  /// The four numbers of a row.
  /// @param is_blank  receives true if all cells are empty
  std::optional<std::array<double, 4>> read_box(const CsvRow& row, bool& is_blank) const {
    if (const std::string text = cell(row, columns_.box_text); !text.empty()) {
      is_blank = false;
      try {
        return read_four(parse_json(text, path_));
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

  const std::string& path_;
  const Columns& columns_;
  const ImportOptions& options_;
  Ledger& ledger_;
  ClassNames names_;
  std::vector<ForeignImage>& images_;
  std::unordered_map<std::string, size_t> by_name_;
};

}  // namespace

ForeignSet read_csv_files(const std::vector<std::string>& paths, const ImportOptions& options) {
  check_one_file_per_split(paths, options);
  ForeignSet set{.sources = paths};
  for (const std::string& path : paths) {
    const std::vector<CsvRow> rows = read_csv(path);
    const Columns columns = find_columns(rows, path);
    CsvReader reader(path, columns, options, set);
    for (size_t i = columns.has_header ? 1 : 0; i < rows.size(); ++i) reader.read_row(rows[i]);
    if (columns.form == BoxForm::kSides) set.assumed_form = columns.form;
  }
  return set;
}

}  // namespace rematch
