#include "tools/import/yolo_labels.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "base/terminal_text.h"
#include "tools/import/forms.h"
#include "tools/import/geometry.h"
#include "tools/import/reasons.h"
#include "tools/import/text_file.h"

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
  ++num_lines_;
  std::vector<double> values = parse_numbers(line);
  if (values.empty()) return image.lose(reason::kOddLine, place);
  const double class_id = values.front();
  values.erase(values.begin());
  if (!is_whole(class_id) || class_id < 0)
    return image.lose("a label line whose class is not a whole number", place);
  if (const char* reason = cut_extras(values, place)) return image.lose(reason, place);
  if (std::any_of(values.begin(), values.end(),
                  [](double share) { return std::abs(share) >= kFarOutside; })) {
    if (num_pixels_++ == 0) first_pixels_ = place;
    return image.lose("a label line in pixels", place);
  }
  const std::string id = fmt::format("{:.0f}", class_id);
  const std::optional<std::string> name = names_.find(id, /*is_id=*/true);
  if (!name) {
    ++unnamed_[id];
    return image.lose(reason::kUnknownClass, place);
  }
  ForeignObject object =
      values.size() == kBox
          ? make_box({values[0], values[1], values[2], values[3]},
                     options_.boxes.value_or(BoxForm::kCentre))
          : make_outline(pair_up(values), options_.polygons,
                         values.size() == kFourCorners ? "rotated boxes" : "outlines", ledger_);
  object.desc = *name;
  image.objects.push_back(std::move(object));
}

const char* YoloLabels::cut_extras(std::vector<double>& values, const std::string& place) {
  if (num_keypoint_values_ > 0) {
    if (values.size() == kBox + num_keypoint_values_) {
      ledger_.note("objects imported without their keypoints");
      values.resize(kBox);
    }
    return values.size() == kBox ? nullptr : reason::kOddLine;
  }
  keypoints_.add(values, place);
  const bool has_track = values.size() == kWithTrack && is_whole(values.back());
  if (has_track && values.back() <= 1)
    return "six numbers: a triangle, or a box with the number of its track";
  if (values.size() == kWithConfidence || has_track) {
    ++num_five_;
    if (values[kBox] < 0 || values[kBox] > 1) {
      if (num_angles_++ == 0) first_angle_ = place;
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
  if (keypoints_.is_proof())
    refuse_source(kCommand, where,
                  fmt::format("boxes with keypoints, not outlines or turned boxes, in {}, e.g. {}",
                              counted(keypoints_.num_lines, "line"), keypoints_.first),
                  fmt::format("say it in the data set's YAML: kpt_shape: {}; the boxes are then "
                              "imported without their keypoints",
                              keypoints_.shape));
  if (num_five_ >= kFewestLines && 10 * num_angles_ > num_five_)
    refuse_source(kCommand, where,
                  fmt::format("the fifth number is not a confidence (0 to 1) in {} of {}, e.g. {}",
                              num_angles_, counted(num_five_, "line"), first_angle_),
                  "write the four corners of turned boxes: class x1 y1 x2 y2 x3 y3 x4 y4");
  if (num_pixels_ > 0 && 2 * num_pixels_ >= num_lines_)
    refuse_source(kCommand, where,
                  fmt::format("{} of {} look like pixels, e.g. {}", num_pixels_,
                              counted(num_lines_, "label line"), first_pixels_),
                  "divide x and width by the image's width, y and height by its height");
  if (!names_.is_empty() || unnamed_.empty()) return;
  std::string ids;
  for (const auto& [id, count] : unnamed_)
    ids += fmt::format("{}{} ({})", ids.empty() ? "" : ", ", id, counted(count, "line"));
  refuse_source(kCommand, where, "the classes have no names; their ids are " + ids,
                "add --names cat,dog,… or --names FILE with one name a line, or write a YAML: "
                "path: . / train: images/train / val: images/val / names: [cat, dog, …]");
}

}  // namespace rematch
