#include "import/yolo_labels.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "import/text_file.h"

namespace rematch {
namespace {

constexpr double kFarOutside = 2;  // a larger value is not normalized, but a pixel or a flag

/// Parses a word as a finite number.
std::optional<double> parse_number(std::string_view word) {
  if (word.starts_with("+")) word.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

/// Parses a line of numbers; empty if a word is not a number.
std::vector<double> parse_numbers(const std::string& line) {
  std::vector<double> numbers;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const std::optional<double> number = parse_number(word);
    if (!number) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

const std::string& class_name(double class_id, const YoloLabels& labels, const std::string& where) {
  const bool is_id = class_id >= 0 && class_id == std::floor(class_id) &&
                     class_id <= std::numeric_limits<int>::max();
  if (!is_id)
    refuse_yolo(where, fmt::format("class {} is not a class id", class_id),
                "begin each line with 0, 1, 2, …, the id of its class in \"names\"");
  const auto name = labels.names.find(static_cast<int>(class_id));
  if (name == labels.names.end())
    refuse_yolo(where, fmt::format("class {} has no name", class_id),
                "add it to \"names\" in the YAML");
  return name->second;
}

ForeignObject make_box(const std::vector<double>& values) {
  ForeignObject object;
  object.x0 = values[0] - values[2] / 2;
  object.y0 = values[1] - values[3] / 2;
  object.x1 = values[0] + values[2] / 2;
  object.y1 = values[1] + values[3] / 2;
  return object;
}

ForeignObject make_outline(const std::vector<double>& values, bool with_ring) {
  std::vector<std::array<double, 2>> ring;
  for (size_t i = 0; i < values.size(); i += 2) ring.push_back({values[i], values[i + 1]});
  ForeignObject object = box_around(ring);
  if (with_ring) object.ring = std::move(ring);
  return object;
}

/// Checks that a line is an object and removes the values after its box or outline.
void check_shape(std::vector<double>& values, const YoloLabels& labels, const std::string& line,
                 const std::string& where, ForeignSet& set) {
  const size_t num_pose = 4 + labels.num_keypoint_values;
  if (labels.num_keypoint_values > 0) {
    if (values.size() != num_pose && values.size() != 4)
      refuse_yolo(where, line,
                  fmt::format("\"kpt_shape\" in the YAML means a class, a box and {} keypoint "
                              "numbers per line: write them, or correct \"kpt_shape\"",
                              labels.num_keypoint_values));
    if (values.size() == num_pose) ++set.notes["objects imported without their keypoints"];
    values.resize(4);
  }
  const bool is_shape = values.size() == 4 || (values.size() >= 6 && values.size() % 2 == 0);
  if (!is_shape)
    refuse_yolo(
        where, line,
        "write \"class x y width height\" or \"class x1 y1 x2 y2 x3 y3 …\", normalized (0 to "
        "1); a data set with keypoints needs \"kpt_shape\" in its YAML");
  if (std::any_of(values.begin(), values.end(),
                  [](double share) { return std::abs(share) >= kFarOutside; }))
    refuse_yolo(where, line,
                "these look like pixels: divide x and width by the image's width, y and height by "
                "its height");
}

}  // namespace

void refuse_yolo(const std::string& where, const std::string& what, const std::string& fix) {
  throw UserError(
      ErrorKind::kData,
      {.error = "this YOLO data set cannot be read", .where = where, .what = what, .fix = fix});
}

std::vector<ForeignObject> read_yolo_labels(const std::filesystem::path& path,
                                            const YoloLabels& labels, ForeignSet& set) {
  std::vector<ForeignObject> objects;
  int line_number = 0;
  for (const std::string& line : read_lines(path.string())) {
    ++line_number;
    if (line.find_first_not_of(" \t\r\f\v") == std::string::npos) continue;
    const std::string where = fmt::format("{}:{}", path.string(), line_number);
    std::vector<double> values = parse_numbers(line);
    if (values.empty())
      refuse_yolo(where, line,
                  "write numbers only: \"class x y width height\", where class is 0, 1, 2, …");
    const double class_id = values.front();
    values.erase(values.begin());
    check_shape(values, labels, line, where, set);
    ForeignObject object =
        values.size() == 4 ? make_box(values) : make_outline(values, labels.polygons);
    object.desc = class_name(class_id, labels, where);
    objects.push_back(std::move(object));
  }
  return objects;
}

}  // namespace rematch
