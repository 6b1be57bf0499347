#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/terminal_text.h"
#include "tools/import/yolo_parts.h"

namespace rematch {
namespace {

constexpr double kFarOutside = 2;  // a larger value is not normalized, but a pixel or a flag
constexpr size_t kBox = 4, kTriangle = 6, kFourCorners = 8;

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

bool is_whole(double value) { return value == std::floor(value); }

/// True for a box and points in it, with flags of visibility or without, where width and height are
/// no corner of an outline.
bool has_keypoints(const std::vector<double>& values) {
  bool has_flags = values.size() > kBox && (values.size() - kBox) % 3 == 0;
  for (size_t i = kBox + 2; has_flags && i < values.size(); i += 3)
    has_flags = values[i] == 0 || values[i] == 1 || values[i] == 2;
  if (!has_flags && (values.size() < kFourCorners || values.size() % 2 != 0)) return false;
  const double x = values[0], y = values[1], width = values[2], height = values[3];
  Outline others{{x, y}};
  for (size_t i = kBox; i + 1 < values.size(); i += has_flags ? 3 : 2) {
    if (values[i] == 0 && values[i + 1] == 0) continue;  // not set
    others.push_back({values[i], values[i + 1]});
    if (2 * std::abs(values[i] - x) > width || 2 * std::abs(values[i + 1] - y) > height)
      return false;
  }
  if (has_flags || others.size() == 1) return others.size() > 1;
  const auto [x0, y0, x1, y1] = extent_of(others);
  const double margin_x = (x1 - x0) / 4, margin_y = (y1 - y0) / 4;
  if (values.size() == kFourCorners) {  // far from the parallelogram of a turned box
    const double gap =
        std::hypot(x + values[4] - width - values[6], y + values[5] - height - values[7]);
    const auto whole = extent_of(pair_up(values));
    return 2 * gap > std::hypot(whole[2] - whole[0], whole[3] - whole[1]);
  }
  return width < x0 - margin_x || width > x1 + margin_x || height < y0 - margin_y ||
         height > y1 + margin_y;
}

}  // namespace

bool is_yolo_label(const std::string& line) { return parse_numbers(line).size() > kBox; }

void YoloLabels::read(const std::filesystem::path& path, ForeignImage& image, ForeignSet& set) {
  int number = 0;
  for (const std::string& line : read_lines(path)) {
    ++number;
    if (line.empty()) continue;
    ForeignEntry entry{.place = fmt::format("{}:{}: {}", path.string(), number, line.substr(0, 80)),
                       .form = BoxForm::kCentre};
    std::vector<double> values = parse_numbers(line);
    if (values.empty()) values = {-1};  // a word: no class
    const double class_id = values.front();
    values.erase(values.begin());
    num_long_ += values.size() > kBox + 1;
    if (has_keypoints(values) && num_keypoints_++ == 0) first_keypoints_ = entry.place;
    entry.name = set.names.find(fmt::format("{:.0f}", class_id), true);
    if (values.size() == kBox)
      entry.box = {values[0], values[1], values[2], values[3]};
    else
      entry.rings = {pair_up(values)};
    const bool may_be_track = values.size() == kTriangle && is_whole(values.back()),
               is_outline = values.size() >= kTriangle && values.size() % 2 == 0 && !may_be_track;
    const auto is_far = [](double share) { return std::abs(share) >= kFarOutside; };
    if (!is_whole(class_id) || class_id < 0 || !(entry.box || is_outline) ||
        std::ranges::any_of(values, is_far))
      entry.reason = reason::kOddLine;
    image.add(entry, set);
  }
}

void YoloLabels::check() const {
  if (num_keypoints_ > 0 && 10 * num_keypoints_ >= 3 * num_long_)
    refuse_keypoints(first_keypoints_,
                     fmt::format("boxes with keypoints, not outlines or turned boxes, in {} of {}",
                                 num_keypoints_, counted(num_long_, "line")));
}

void refuse_yolo(const std::string& where, const std::string& what, const std::string& fix) {
  refuse_source("from-yolo", where, what, fix);
}

void refuse_keypoints(const std::string& where, const std::string& what) {
  refuse_yolo(
      where, what,
      "keep the first five numbers of each line (cut -d' ' -f1-5 FILE > NEW), and leave out "
      "\"kpt_shape\"");
}

}  // namespace rematch
