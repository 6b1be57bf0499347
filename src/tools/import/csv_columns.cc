#include "tools/import/csv_table.h"

#include <algorithm>
#include <cctype>

#include "tools/import/geometry.h"
#include "tools/import/image_files.h"

namespace rematch {
namespace {

using Names = std::vector<std::string>;

/// Lower case without anything but letters and digits: "X_Min" and "xmin" are one.
std::string plain(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte)) result += static_cast<char>(std::tolower(byte));
  }
  return result;
}

int find_column(const Names& header, const Names& wanted) {
  for (const std::string& name : wanted) {
    const auto found = std::find(header.begin(), header.end(), name);
    if (found != header.end()) return static_cast<int>(found - header.begin());
  }
  return -1;
}

/// Names of the four columns of a box.
struct BoxNames {
  Names names[4];
  BoxForm form;
};

const BoxNames kBoxNames[] = {
    {{{"xmin", "x1", "bboxx1", "bboxxmin", "minx", "x0"},
      {"ymin", "y1", "bboxy1", "bboxymin", "miny", "y0"},
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

bool find_box(const Names& header, CsvColumns& columns) {
  columns.angle = find_column(header, {"angle", "rotation", "theta"});
  if (find_column(header, {"x3"}) >= 0 && find_column(header, {"y3"}) >= 0) return false;
  const bool begins_at_0 = find_column(header, {"x0"}) >= 0 && find_column(header, {"x2"}) < 0;
  for (const BoxNames& row : kBoxNames) {
    if (begins_at_0 && &row == &kBoxNames[0]) continue;
    std::array<int, 4> box{};
    for (size_t k = 0; k < 4; ++k) box[k] = find_column(header, row.names[k]);
    if (*std::min_element(box.begin(), box.end()) < 0) continue;
    columns.box = box;
    columns.form = row.form;
    return true;
  }
  columns.box_text = find_column(header, {"bbox", "box", "bndbox"});
  columns.form = BoxForm::kSides;
  return columns.box_text >= 0;
}

/// Path, four numbers or nothing, class: RetinaNet's rows.
bool is_retinanet(const CsvRow& row) {
  if (row.cells.size() != 6 || !is_image_name(row.cells[0])) return false;
  return std::all_of(row.cells.begin() + 1, row.cells.begin() + 5, [](const std::string& cell) {
    return cell.empty() || parse_number(cell).has_value();
  });
}

}  // namespace

std::optional<CsvColumns> find_csv_columns(const std::vector<CsvRow>& rows) {
  if (rows.empty()) return std::nullopt;
  CsvColumns columns;
  if (is_retinanet(rows.front()))
    return CsvColumns{.image = 0, .name = 5, .box = {1, 2, 3, 4}, .has_header = false};
  Names header;
  for (const std::string& cell : rows.front().cells) header.push_back(plain(cell));
  columns.image =
      find_column(header, {"filename", "imagefilename", "imagepath", "filepath", "imagename",
                           "imgpath", "path", "file", "image", "img", "imageid", "id"});
  columns.name =
      find_column(header, {"classname", "labelname", "categoryname", "class", "label", "name",
                           "category", "labels", "object", "species", "classid"});
  columns.crowd = find_column(header, {"isgroupof", "iscrowd"});
  if (columns.image < 0 || !find_box(header, columns)) return std::nullopt;
  const bool uses_size = std::find(columns.box.begin(), columns.box.end(),
                                   find_column(header, {"width"})) != columns.box.end();
  columns.width = find_column(header, {"imagewidth", "imgwidth"});
  columns.height = find_column(header, {"imageheight", "imgheight"});
  if (columns.width < 0 && !uses_size) {
    columns.width = find_column(header, {"width"});
    columns.height = find_column(header, {"height"});
  }
  columns.is_normalized = find_column(header, {"imageid"}) == columns.image &&
                          find_column(header, {"labelname"}) == columns.name && columns.name >= 0;
  return columns;
}

}  // namespace rematch
