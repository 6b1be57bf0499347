#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <unordered_map>

#include "base/text.h"
#include "tools/import/class_names.h"
#include "tools/import/foreign.h"
#include "tools/import/geometry.h"
#include "tools/import/json_value.h"
#include "tools/import/reasons.h"
#include "tools/import/source_files.h"

namespace rematch {
namespace {

constexpr SourceForm kForm = {.command = "from-csv", .ending = ".csv"};
constexpr const char* kImage =
    "filename imagepath filepath imagename path file image img imageid id";
constexpr const char* kClass =
    "classname labelname categoryname class label name category labels object species classid";

/// Columns of the four numbers of a box, and their meaning. The first row that fits counts.
struct BoxColumns {
  const char* names[4];
  BoxForm form;
};
constexpr BoxColumns kBoxes[] = {
    {{"xmin x1 minx bboxx1 bboxxmin left", "ymin y1 miny bboxy1 bboxymin top",
      "xmax x2 maxx bboxx2 bboxxmax right", "ymax y2 maxy bboxy2 bboxymax bottom"},
     BoxForm::kCorners},
    {{"x0", "y0", "x1", "y1"}, BoxForm::kCorners},
    {{"bboxx left x", "bboxy top y", "bboxwidth bboxw w width", "bboxheight bboxh h height"},
     BoxForm::kSides},
    {{"xcenter xcentre cx", "ycenter ycentre cy", "bboxwidth w width", "bboxheight h height"},
     BoxForm::kCentre},
};

/// Reads a CSV (RFC 4180) into rows of trimmed cells: cells may stand between quotes, also over
/// several lines. The separator is the most frequent of comma, semicolon and tab in the first line.
class CsvText {
 public:
  explicit CsvText(const std::string& path) : path_(path), text_(read_utf8(path)) {
    const auto end =
        text_.begin() + static_cast<std::ptrdiff_t>(std::min(text_.find('\n'), text_.size()));
    for (const char each : {';', '\t'}) {
      if (std::count(text_.begin(), end, each) > std::count(text_.begin(), end, separator_))
        separator_ = each;
    }
  }

  /// The next row that is not blank; empty at the end.
  /// @throws UserError (data) for a quote that does not end: rows after it would be one cell
  std::vector<std::string> next() {
    std::vector<std::string> cells(1);
    bool in_quotes = false;
    line = next_line_;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      next_line_ += c == '\n';
      if (in_quotes && c == '"' && text_.compare(at_, 1, "\"") == 0) {
        cells.back() += text_[at_++];
      } else if (c == '"' && (in_quotes || python_strip(cells.back()).empty())) {
        in_quotes = !in_quotes;
      } else if (in_quotes || (c != separator_ && c != '\n')) {
        cells.back() += c;
      } else if (c == separator_) {
        cells.emplace_back();
      } else {
        break;
      }
    }
    if (in_quotes)
      refuse_source(kForm.command, fmt::format("{}:{}", path_, line), "a quote in it does not end",
                    "write a quote at the end of its cell, or remove it");
    for (std::string& cell : cells) cell = python_strip(cell);
    const bool is_blank = cells.size() == 1 && cells[0].empty();
    return !is_blank ? cells : at_ < text_.size() ? next() : std::vector<std::string>();
  }

  int64_t line = 1;  ///< of the last row

 private:
  std::string path_, text_;
  char separator_ = ',';
  size_t at_ = 0;
  int64_t next_line_ = 1;
};

/// The cells of a row by the names of their columns, in lower case without anything but letters and
/// digits: "X_Min" and "xmin" are one.
using Row = std::map<std::string, std::string>;

/// The cell of the first of several columns, divided by blanks, that is there; null without one.
const std::string* find(const Row& row, const char* columns) {
  for (const std::string& name : split(columns, ' ')) {
    if (const auto found = row.find(name); found != row.end()) return &found->second;
  }
  return nullptr;
}

std::string value(const Row& row, const char* columns) {
  const std::string* cell = find(row, columns);
  return cell == nullptr ? "" : *cell;
}

/// The names of the columns.
/// @throws UserError (data) for two of one name
std::vector<std::string> read_header(const std::vector<std::string>& cells,
                                     const std::string& path) {
  std::vector<std::string> header;
  for (const std::string& cell : cells) {
    std::string name = lower_case(cell);
    std::erase_if(name, [](unsigned char c) { return std::isalnum(c) == 0; });
    if (!name.empty() && std::find(header.begin(), header.end(), name) != header.end())
      refuse_source(kForm.command, path, fmt::format("it has the column \"{}\" twice", cell),
                    "remove one of them");
    header.push_back(std::move(name));
  }
  return header;
}

/// The columns of a box; null for one cell with four numbers, or for none.
const BoxColumns* find_box(const Row& row) {
  const auto found = std::find_if(std::begin(kBoxes), std::end(kBoxes), [&](const auto& box) {
    return std::all_of(std::begin(box.names), std::end(box.names),
                       [&](const char* names) { return find(row, names) != nullptr; });
  });
  return found == std::end(kBoxes) ? nullptr : found;
}

/// The cells with the numbers of a box.
std::string box_text(const Row& row, const BoxColumns* columns) {
  if (columns == nullptr) return value(row, "bbox box bndbox");
  std::string text;
  for (const char* names : columns->names) text += value(row, names) + " ";
  return python_strip(text);
}

/// The size and the box of a row for its image.
void read_row(const Row& row, const NamesById& names, const ImportOptions& options,
              ForeignImage& image, const std::string& place, Ledger& ledger) {
  const BoxColumns* columns = find_box(row);
  const bool has_own_width =
      columns != nullptr && find(row, columns->names[2]) == find(row, "width");
  image.state_size(parse_number(value(row, has_own_width ? "imagewidth" : "imagewidth width")),
                   parse_number(value(row, has_own_width ? "imageheight" : "imageheight height")));
  const std::string box = box_text(row, columns), written = value(row, kClass),
                    crowd = lower_case(value(row, "isgroupof iscrowd"));
  if (box.empty() && written.empty()) return;                       // the image shows nothing
  const bool is_id = names.is_empty() ? written.starts_with("/m/")  // OpenImages
                                      : image.is_partial || parse_number(written).has_value();
  ForeignEntry entry{.place = place + ": " + written, .name = names.find(written, is_id)};
  // letters would say what the numbers mean: {'xmin': 1, 'xmax': 20, …}
  const bool has_words = box.find_first_not_of("0123456789+-.eE ,;[]()") != box.npos;
  if (const Outline points = read_written_points(box); points.size() == 2 && !has_words)
    set_points(entry, points);
  entry.form = columns == nullptr ? BoxForm::kSides : columns->form;
  if (crowd == "1" || crowd == "true") entry.skipped = kCrowd;
  if (parse_number(value(row, "angle rotation theta")).value_or(0) != 0)
    entry.reason = reason::kRotated;
  image.add(entry, options, ledger);
}

void read_csv(const std::string& path, const NamesById& names, const ImportOptions& options,
              ForeignSet& set, std::vector<ForeignImage>& images) {
  CsvText text(path);
  std::vector<std::string> cells = text.next();
  const std::string first = join(cells, ", ");
  const std::vector<std::string> header = read_header(cells, path);
  cells = text.next();
  Row columns;
  for (const std::string& name : header) columns[name];
  const BoxColumns* box = find_box(columns);
  if (find(columns, kImage) == nullptr || find(columns, "x3") != nullptr ||
      (box == nullptr && find(columns, "bbox box bndbox") == nullptr))
    refuse_source(kForm.command, path, "its columns are " + first,
                  "name the columns filename, xmin, ymin, xmax, ymax, class (or x, y, width, "
                  "height); of four corners write the box around them");
  // OpenImages: XMin … are shares of the sides, and other classes may be there too
  const bool is_open_images = find(columns, kImage) == find(columns, "imageid") &&
                              find(columns, kClass) == find(columns, "labelname") &&
                              columns.contains("labelname");
  if (box == nullptr || box->form == BoxForm::kSides) set.assumed_form = BoxForm::kSides;
  std::unordered_map<std::string, size_t> by_name;
  for (; !cells.empty(); cells = text.next()) {
    Row row = columns;
    for (size_t i = 0; i < std::min(cells.size(), header.size()); ++i) row[header[i]] = cells[i];
    const std::string name = value(row, kImage), place = fmt::format("{}:{}", path, text.line);
    if (name.empty()) {
      set.ledger.lose_record("a row without an image", place);
      continue;
    }
    const auto [known, is_new] = by_name.try_emplace(name, images.size());
    if (is_new) images.push_back(image_in(path, name, place));
    ForeignImage& image = images[known->second];
    image.is_partial = is_open_images;
    if (is_open_images) image.unit = CoordUnit::kShares;
    const bool has_more = cells.size() > header.size() &&
                          !join({cells.begin() + std::ssize(header), cells.end()}, "").empty();
    if (has_more)
      image.lose("a row with more cells than columns", place);
    else
      read_row(row, names, options, image, place, set.ledger);
  }
}

}  // namespace

ForeignSet read_csv_files(const std::vector<std::string>& sources, const ImportOptions& options) {
  ForeignSet set;
  const NamesById names(options.names);
  set.classes = names.in_order();
  read_files(find_files(sources, kForm, options), kForm, set,
             [&](const std::string& path, std::vector<ForeignImage>& images) {
               read_csv(path, names, options, set, images);
             });
  return set;
}

}  // namespace rematch
