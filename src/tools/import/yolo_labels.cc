#include "tools/import/yolo_labels.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "base/terminal_text.h"
#include "tools/import/geometry.h"
#include "tools/import/reasons.h"
#include "tools/import/source_files.h"

namespace rematch {
namespace {

constexpr const char* kCommand = "from-yolo";
constexpr double kFarOutside = 2;  // a larger value is not normalized, but a pixel or a flag
constexpr double kSlack = 0.02;
constexpr int64_t kFewestLines = 3;  // fewer prove nothing
constexpr const char* kBlank = " \t\r\f\v";
constexpr size_t kBox = 4, kWithConfidence = 5, kWithTrack = 6, kFourCorners = 8;

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

/// True if a box of centre and sides reaches out of its image.
bool leaves_image(const double* box) {
  const auto leaves = [](double centre, double side) {
    return centre - side / 2 < -kSlack || centre + side / 2 > 1 + kSlack;
  };
  return leaves(box[0], box[2]) || leaves(box[1], box[3]);
}

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
  const ForeignObject extent = box_around(others);
  const double margin_x = (extent.x1 - extent.x0) / 4, margin_y = (extent.y1 - extent.y0) / 4;
  if (values.size() == kFourCorners) {  // far from the parallelogram of a turned box
    const double gap =
        std::hypot(x + values[4] - width - values[6], y + values[5] - height - values[7]);
    const ForeignObject whole = box_around(pair_up(values));
    return 2 * gap > std::hypot(whole.x1 - whole.x0, whole.y1 - whole.y0);
  }
  return width < extent.x0 - margin_x || width > extent.x1 + margin_x ||
         height < extent.y0 - margin_y || height > extent.y1 + margin_y;
}

}  // namespace

bool is_yolo_label_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.find_first_not_of(kBlank) != line.npos) return parse_numbers(line).size() > kBox;
  }
  return false;
}

void YoloLabels::read(const std::filesystem::path& path, ForeignImage& image) {
  int number = 0;
  for (const std::string& line : read_lines(path.string())) {
    ++number;
    if (const size_t end = line.find_last_not_of(kBlank); end != line.npos)
      read_line(line.substr(0, end + 1), fmt::format("{}:{}", path.string(), number), image);
  }
}

void YoloLabels::read_line(const std::string& line, const std::string& at, ForeignImage& image) {
  const std::string place = fmt::format("{}: {}", at, line.substr(0, 80));
  all_.add(place);
  std::vector<double> values = parse_numbers(line);
  if (values.empty()) return image.lose(reason::kOddLine, place);
  const double class_id = values.front();
  values.erase(values.begin());
  if (!is_whole(class_id) || class_id < 0)
    return image.lose("a label line whose class is not a whole number", place);
  if (const char* reason = cut_extras(values, place)) return image.lose(reason, place);
  if (std::any_of(values.begin(), values.end(),
                  [](double share) { return std::abs(share) >= kFarOutside; })) {
    pixels_.add(place);
    return image.lose("a label line in pixels", place);
  }
  const std::string id = fmt::format("{:.0f}", class_id);
  const std::optional<std::string> name = names_.find(id, /*is_id=*/true);
  if (!name) {
    ++unnamed_[id];
    return image.lose(reason::kUnknownClass, place);
  }
  if (values.size() == kBox)
    return image.add_box({values[0], values[1], values[2], values[3]},
                         options_.boxes.value_or(BoxForm::kCentre), *name);
  image.objects.push_back(make_outline(pair_up(values), options_.polygons, ledger_));
  image.objects.back().desc = *name;
}

const char* YoloLabels::cut_extras(std::vector<double>& values, const std::string& place) {
  if (num_keypoint_values_ > 0) {
    if (values.size() == kBox + num_keypoint_values_) {
      ledger_.note("objects imported without their keypoints");
      values.resize(kBox);
    }
    return values.size() == kBox ? nullptr : reason::kOddLine;
  }
  if (values.size() > kWithConfidence) long_.add(place);
  if (has_keypoints(values)) keypoints_.add(place);
  const bool has_track = values.size() == kWithTrack && is_whole(values.back());
  if (has_track && values.back() <= 1)
    return "six numbers: a triangle, or a box with the number of its track";
  if (values.size() == kWithConfidence || has_track) {
    five_.add(place);
    if (values[kBox] < 0 || values[kBox] > 1) {
      angles_.add(place);
      return reason::kOddLine;
    }
    if (leaves_image(values.data()) && !leaves_image(values.data() + 1))
      return "a line whose confidence seems to be its second number";
    ledger_.note("boxes imported without their confidence");
    values.resize(kBox);
  }
  const bool is_outline = values.size() >= kWithTrack && values.size() % 2 == 0;
  return values.size() == kBox || is_outline ? nullptr : reason::kOddLine;
}

void YoloLabels::check(const std::string& where) const {
  const auto refuse = [&](const char* what, const Lines& lines, const Lines& of, const char* fix) {
    refuse_source(kCommand, where,
                  fmt::format("{} in {} of {}, e.g. {}", what, lines.count,
                              counted(of.count, "line"), lines.first),
                  fix);
  };
  if (keypoints_.count > 0 && 10 * keypoints_.count >= 3 * long_.count)
    refuse("boxes with keypoints, not outlines or turned boxes,", keypoints_, long_,
           "say it in the YAML: kpt_shape: [points, 2], or [points, 3] with flags");
  if (five_.count >= kFewestLines && 10 * angles_.count > five_.count)
    refuse("the fifth number is not a confidence (0 to 1)", angles_, five_,
           "write the four corners of turned boxes: class x1 y1 x2 y2 x3 y3 x4 y4");
  if (pixels_.count > 0 && 2 * pixels_.count >= all_.count)
    refuse("the numbers look like pixels", pixels_, all_,
           "divide x and width by the image's width, y and height by its height");
  if (!names_.is_empty() || unnamed_.empty()) return;
  std::string ids;
  for (const auto& [id, count] : unnamed_)
    ids += fmt::format("{}{} ({})", ids.empty() ? "" : ", ", id, counted(count, "line"));
  refuse_source(kCommand, where, "the classes have no names; their ids are " + ids,
                "add --names cat,dog,… or --names FILE with one name a line");
}

}  // namespace rematch
