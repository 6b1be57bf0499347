#include "tools/import/yolo_labels.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "tools/import/geometry.h"
#include "tools/import/reasons.h"
#include "tools/import/text_file.h"

namespace rematch {
namespace {

constexpr double kFarOutside = 2;  // a larger value is not normalized, but a pixel or a flag
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

}  // namespace

bool is_yolo_label_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.find_first_not_of(kBlank) != std::string::npos)
      return parse_numbers(line).size() > kBox;
  }
  return false;
}

void YoloLabels::read(const std::filesystem::path& path, ForeignImage& image) {
  int number = 0;
  for (const std::string& line : read_lines(path.string())) {
    ++number;
    const size_t end = line.find_last_not_of(kBlank);
    if (end == std::string::npos) continue;
    read_line(line.substr(0, end + 1), path.parent_path(),
              fmt::format("{}:{}", path.string(), number), image);
  }
}

void YoloLabels::read_line(const std::string& line, const std::filesystem::path& folder,
                           const std::string& place, ForeignImage& image) {
  const auto lose = [&](const char* reason) {
    image.lose(reason, fmt::format("{}: {}", place, line.substr(0, 80)));
  };
  ++evidence_.num_lines;
  std::vector<double> values = parse_numbers(line);
  if (values.empty()) return lose(reason::kOddLine);
  const double class_id = values.front();
  values.erase(values.begin());
  if (!is_whole(class_id) || class_id < 0)
    return lose("a label line whose class is not a whole number");
  note_form(values, place + ": " + line);
  if (!cut_extras(values, folder)) return lose(reason::kOddLine);
  if (std::any_of(values.begin(), values.end(),
                  [](double share) { return std::abs(share) >= kFarOutside; })) {
    if (evidence_.num_pixels++ == 0) evidence_.first_pixels = place + ": " + line;
    return lose("a label line in pixels");
  }
  const std::string id = fmt::format("{:.0f}", class_id);
  const auto name = names_.find(id);
  if (name == names_.end()) {
    ++evidence_.unnamed[id];
    return lose(reason::kUnknownClass);
  }
  ForeignObject object = make(values);
  object.desc = name->second;
  image.objects.push_back(std::move(object));
}

/// Counts what tells keypoints from outlines, and angles from confidences.
void YoloLabels::note_form(const std::vector<double>& values, const std::string& line) {
  if (num_keypoint_values_ > 0) return;
  evidence_.keypoints.add(values, line);
  if (values.size() != kWithConfidence) return;
  ++evidence_.num_five;
  if (values.back() >= 0 && values.back() <= 1) return;
  if (evidence_.num_angles++ == 0) evidence_.first_angle = line;
}

/// Removes keypoints, confidence and track.
/// @return false if the rest is neither a box nor an outline
bool YoloLabels::cut_extras(std::vector<double>& values, const std::filesystem::path& folder) {
  if (num_keypoint_values_ > 0) {
    if (values.size() == kBox + num_keypoint_values_) {
      ledger_.note("objects imported without their keypoints");
      values.resize(kBox);
    }
    return values.size() == kBox;
  }
  const bool has_track =
      values.size() == kWithTrack && is_whole(values.back()) && !has_outlines(folder);
  if (values.size() == kWithConfidence || has_track) {
    if (values[kBox] < 0 || values[kBox] > 1) return false;  // an angle, perhaps
    ledger_.note("boxes imported without their confidence");
    values.resize(kBox);
  }
  return values.size() == kBox || (values.size() >= kWithTrack && values.size() % 2 == 0);
}

ForeignObject YoloLabels::make(const std::vector<double>& values) {
  if (values.size() == kBox)
    return make_box({values[0], values[1], values[2], values[3]},
                    options_.boxes.value_or(BoxForm::kCentre));
  return make_outline(pair_up(values), options_.polygons,
                      values.size() == kFourCorners ? "rotated boxes" : "outlines", ledger_);
}

/// True if a line of a folder's files has five corners or more, so that six numbers are a triangle.
bool YoloLabels::has_outlines(const std::filesystem::path& folder) {
  const auto [known, is_new] = has_outlines_.try_emplace(folder, false);
  if (!is_new) return known->second;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".txt") continue;
    std::ifstream file(entry.path());
    for (std::string line; !known->second && std::getline(file, line);) {
      const size_t count = parse_numbers(line).size();
      known->second = count > 1 + kFourCorners && count % 2 == 1;
    }
  }
  return known->second;
}

}  // namespace rematch
