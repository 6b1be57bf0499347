#include "tools/import/yolo_labels.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
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

bool is_yolo_label_file(const std::filesystem::path& path) {
  for (const std::string& line : read_lines(path.string())) {
    if (!line.empty()) return parse_numbers(line).size() > kBox;
  }
  return false;
}

void YoloLabels::read(const std::filesystem::path& path, ForeignImage& image) {
  int number = 0;
  for (const std::string& line : read_lines(path.string())) {
    ++number;
    if (!line.empty())
      read_line(line, fmt::format("{}:{}: {}", path.string(), number, line.substr(0, 80)), image);
  }
}

void YoloLabels::read_line(const std::string& line, const std::string& place, ForeignImage& image) {
  all_.add(place);
  std::vector<double> values = parse_numbers(line);
  if (values.empty()) return image.lose(reason::kOddLine, place);
  const double class_id = values.front();
  values.erase(values.begin());
  if (!is_whole(class_id) || class_id < 0)
    return image.lose("a label line whose class is not a whole number", place);
  const std::string id = fmt::format("{:.0f}", class_id);
  ForeignEntry entry{.place = place, .name = names_.find(id, /*is_id=*/true)};
  entry.form = BoxForm::kCentre;
  entry.reason = cut_extras(values, place);
  if (entry.reason.empty() && std::any_of(values.begin(), values.end(), [](double share) {
        return std::abs(share) >= kFarOutside;
      })) {
    pixels_.add(place);
    entry.reason = "a label line in pixels";
  }
  if (entry.reason.empty() && !entry.name) ++unnamed_[id];
  if (values.size() == kBox)
    entry.box = {values[0], values[1], values[2], values[3]};
  else
    entry.rings = {pair_up(values)};
  image.add(entry, options_, ledger_);
}

std::string YoloLabels::cut_extras(std::vector<double>& values, const std::string& place) {
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
    const bool is_second = leaves_image(values.data()), is_last = leaves_image(values.data() + 1);
    if (is_second != is_last) (is_second ? second_ : last_).add(place);
    if (is_second && !is_last) return reason::kSecondConfidence;
    ledger_.note("boxes imported without their confidence");
    values.resize(kBox);
  }
  const bool is_outline = values.size() >= kWithTrack && values.size() % 2 == 0;
  return values.size() == kBox || is_outline ? "" : reason::kOddLine;
}

void YoloLabels::check(const std::string& where) const {
  const auto refuse = [&](const char* what, const Lines& lines, const Lines& of,
                          const std::string& fix) {
    refuse_source(kCommand, where,
                  fmt::format("{} in {} of {}, e.g. {}", what, lines.count,
                              counted(of.count, "line"), lines.first),
                  fix);
  };
  if (keypoints_.count > 0 && 10 * keypoints_.count >= 3 * long_.count)
    refuse("boxes with keypoints, not outlines or turned boxes,", keypoints_, long_, kBoxesOnly);
  if (five_.count >= kFewestLines && 10 * angles_.count > five_.count)
    refuse("the fifth number is not a confidence (0 to 1)", angles_, five_,
           "write the four corners of turned boxes: class x1 y1 x2 y2 x3 y3 x4 y4");
  if (second_.count > last_.count)
    refuse("the confidence seems to be the second number", second_, five_,
           reason::fix_for(reason::kSecondConfidence));
  if (pixels_.count > 0 && 2 * pixels_.count >= all_.count)
    refuse("the numbers look like pixels", pixels_, all_,
           "divide x and width by the image's width, y and height by its height");
  if (!names_.is_empty() || unnamed_.empty()) return;
  std::string ids;
  for (const auto& [id, count] : unnamed_)
    ids += fmt::format("{}{} ({})", ids.empty() ? "" : ", ", id, counted(count, "line"));
  refuse_source(kCommand, where, "the classes have no names; their ids are " + ids,
                "add --names cat,dog,… or --names with a file of one name a line");
}

}  // namespace rematch
