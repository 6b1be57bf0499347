#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "base/text.h"
#include "tools/import/csv_table.h"
#include "tools/import/source_files.h"

namespace rematch {
namespace {

constexpr SourceForm kForm = {.command = "from-csv", .ending = ".csv"};
constexpr const char* kImage =
    "filename imagepath filepath imagename path file image img imageid id";
constexpr const char* kClass =
    "classname labelname categoryname class label name category labels object species classid";
constexpr const char* kNames = "class label category classname labelname categoryname";

/// Columns of the four numbers of a box, and their meaning. The first row that fits counts.
struct BoxColumns {
  std::vector<const char*> names;
  BoxForm form;
};
const BoxColumns kBoxes[] = {
    {{"xmin x1 minx bboxx1 bboxxmin left", "ymin y1 miny bboxy1 bboxymin top",
      "xmax x2 maxx bboxx2 bboxxmax right", "ymax y2 maxy bboxy2 bboxymax bottom"},
     BoxForm::kCorners},
    {{"x0", "y0", "x1", "y1"}, BoxForm::kCorners},
    {{"bboxx left x", "bboxy top y", "bboxwidth bboxw w width", "bboxheight bboxh h height"},
     BoxForm::kSides},
    {{"xcenter xcentre cx", "ycenter ycentre cy", "bboxwidth w width", "bboxheight h height"},
     BoxForm::kCentre},
    {{"bbox box bndbox"}, BoxForm::kSides},
};

/// The columns of a box; null for none.
const BoxColumns* find_box(const CsvRow& row) {
  const auto has = [&row](const char* names) { return find_cell(row, names) != nullptr; };
  const auto found = std::ranges::find_if(
      kBoxes, [&has](const auto& box) { return std::ranges::all_of(box.names, has); });
  return found == std::end(kBoxes) ? nullptr : found;
}

/// True if the columns of a class name it differently. Numbers are no names without --names.
bool has_two_names(const CsvRow& row, const NamesById& names) {
  std::set<std::string> found;
  for (const std::string& column : split(kNames, ' ')) {
    const std::string text = cell_of(row, column.c_str());
    found.insert(names.find(text, parse_number(text).has_value()).value_or(""));
  }
  found.erase("");
  return found.size() > 1;
}

/// The size and the box of a row for its image.
void read_row(const CsvRow& row, const BoxColumns& columns, const std::string& place,
              ForeignImage& image, ForeignSet& set) {
  const bool has_own_width =
      columns.names.size() == 4 && find_cell(row, columns.names[2]) == find_cell(row, "width");
  for (const std::string prefix : {"image", "img", ""}) {
    if (prefix.empty() && has_own_width) continue;
    image.state_size(cell_of(row, (prefix + "width").c_str()),
                     cell_of(row, (prefix + "height").c_str()));
  }
  std::string box;
  for (const char* names : columns.names) box += cell_of(row, names) + " ";
  box = python_strip(box);
  std::string written = cell_of(row, kClass);
  for (const std::string& column : split(kNames, ' '))
    if (written.empty()) written = cell_of(row, column.c_str());
  if (box.empty() && written.empty()) return;                           // the image shows nothing
  const bool is_id = set.names.is_empty() ? written.starts_with("/m/")  // OpenImages
                                          : image.is_partial || parse_number(written).has_value();
  ForeignEntry entry{.place = place + ": " + written, .name = set.names.find(written, is_id)};
  // letters would say what the numbers mean: {'xmin': 1, 'xmax': 20, …}
  const bool has_words = box.find_first_not_of("0123456789+-.eE ,;[]()") != box.npos;
  if (const Outline points = read_written_points(box); points.size() == 2 && !has_words)
    set_points(entry, points);
  entry.form = columns.form;
  read_marks(Json(row), entry, set.ledger);
  if (has_two_names(row, set.names)) entry.reason = reason::kTwoNames;
  image.add(entry, set);
}

void read_csv(const std::string& path, ForeignSet& set, ForeignImages& images) {
  CsvTable table(path);
  const CsvRow& columns = table.columns;
  bool has_row = table.next();
  const BoxColumns* box = find_box(columns);
  if (find_cell(columns, kImage) == nullptr || find_cell(columns, "x3") != nullptr ||
      box == nullptr)
    refuse_source(kForm.command, path, "its columns are " + table.header,
                  "name the columns filename, xmin, ymin, xmax, ymax, class (or x, y, width, "
                  "height); of four corners write the box around them");
  // OpenImages: XMin … are shares of the sides, and other classes may be there too
  const bool is_open_images = find_cell(columns, kImage) == find_cell(columns, "imageid") &&
                              find_cell(columns, kClass) == find_cell(columns, "labelname") &&
                              columns.contains("labelname");
  if (box->form == BoxForm::kSides) set.assumed_form = BoxForm::kSides;
  std::unordered_map<std::string, size_t> by_name;
  for (; has_row; has_row = table.next()) {
    const CsvRow row = table.row();
    const std::string name = cell_of(row, kImage), place = fmt::format("{}:{}", path, table.line);
    if (name.empty()) {
      set.ledger.lose_record("a row without an image", place);
      continue;
    }
    const auto [known, is_new] = by_name.try_emplace(name, images.size());
    if (is_new) images.push_back(image_of_record({}, name, path, place));
    ForeignImage& image = images[known->second];
    image.is_partial = is_open_images;
    if (is_open_images) image.unit = CoordUnit::kShares;
    if (table.has_more_cells())
      image.lose("a row with more cells than columns", place);
    else
      read_row(row, *box, place, image, set);
  }
}

}  // namespace

ForeignSet read_csv_files(const Strings& sources, const ImportOptions& options) {
  return read_sources(sources, kForm, {.options = options}, read_csv);
}

}  // namespace rematch
