#include "import/stock_answer.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr double kLastBin = kNumBins - 1;

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw UserError(
      ErrorKind::kData,
      {.error = "an answer is not a list of boxes",
       .where = where,
       .what = what,
       .fix = "write [{\"bbox_2d\": [x1, y1, x2, y2], \"label\": \"cat\"}], fenced or bare"});
}

/// The text after an opening fence, or all text if there is none.
std::string_view skip_fence(std::string_view text) {
  constexpr std::string_view kFence = "```json", kAnyFence = "```";
  if (const size_t fence = text.find(kFence); fence != std::string_view::npos)
    return text.substr(fence + kFence.size());
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || !text.substr(first).starts_with(kAnyFence)) return text;
  return text.substr(first + kAnyFence.size());
}

/// Finds the JSON value at the start of the text by its brackets; the whole text if they stay open.
std::string_view find_first_value(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
      continue;
    }
    in_string = c == '"';
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && --depth == 0) return text.substr(0, i + 1);
  }
  return text;
}

bool mentions_box(std::string_view text) {
  return text.find("\"bbox_2d\"") != std::string_view::npos;
}

/// Reads the entries of one answer.
class EntryReader {
 public:
  EntryReader(const StockSides& sides, StockAnswer& answer) : sides_(sides), answer_(answer) {}

  void read(const Json& entry, size_t index) {
    std::string problem;
    std::optional<SceneObject> object = read_object(entry, problem);
    if (object) return answer_.objects.push_back(*std::move(object));
    answer_.problems.push_back(fmt::format("entry {}: {}", index + 1, problem));
  }

 private:
  std::optional<SceneObject> read_object(const Json& entry, std::string& problem) {
    if (!entry.is_object()) {
      problem = fmt::format("it is not an object: {}", show_json(entry));
      return std::nullopt;
    }
    std::optional<Geometry> box = read_box(entry, problem);
    if (!box) return std::nullopt;
    const auto label = entry.contains("label") ? entry.find("label") : entry.find("desc");
    if (label == entry.end()) {
      problem = "it has no \"label\"";
    } else if (!label->is_string() || python_strip(label->get<std::string>()).empty()) {
      problem = fmt::format("its \"label\" is not a name: {}", show_json(*label));
    } else {
      return SceneObject{.desc = python_strip(label->get<std::string>()),
                         .geometry = *std::move(box)};
    }
    return std::nullopt;
  }

  std::optional<Geometry> read_box(const Json& entry, std::string& problem) {
    const auto box = entry.find("bbox_2d");
    if (box == entry.end()) {
      problem = "it has no \"bbox_2d\"";
      return std::nullopt;
    }
    const bool is_box =
        box->is_array() && box->size() == 4 &&
        std::all_of(box->begin(), box->end(), [](const Json& side) { return side.is_number(); });
    if (!is_box) {
      problem = fmt::format("\"bbox_2d\" is not four numbers: {}", show_json(*box));
      return std::nullopt;
    }
    ++answer_.num_boxes;
    Geometry geometry;
    bool is_beyond = false;
    for (size_t k = 0; k < 4; ++k) {
      const double value = (*box)[k].get<double>();
      const int side = k % 2 == 0 ? sides_.x : sides_.y;
      answer_.largest = std::max(answer_.largest, value);
      answer_.smallest = std::min(answer_.smallest, value);
      answer_.has_fractions = answer_.has_fractions || (*box)[k].is_number_float();
      is_beyond = is_beyond || !(value >= 0 && value <= side);
      if (!is_beyond) geometry.bins.push_back(stock_to_bin(value, side));
    }
    if (!is_beyond) return geometry;
    ++answer_.num_beyond;
    problem = fmt::format("{} is not within 0..{} x 0..{}", show_json(*box), sides_.x, sides_.y);
    return std::nullopt;
  }

  const StockSides& sides_;
  StockAnswer& answer_;
};

}  // namespace

StockSides stock_sides(const StockScale& scale, const ImageSize& file, const std::string& where) {
  if (scale.unit == StockScale::Unit::kThousandths) return {};
  if (scale.unit == StockScale::Unit::kFilePixels) return {.x = file.width_px, .y = file.height_px};
  const ImageSize resized = smart_resize(file, scale.resize, where);
  return {.x = resized.width_px, .y = resized.height_px};
}

int bin_to_stock(int bin, int side) {
  return static_cast<int>(std::floor(static_cast<double>(bin) * side / kLastBin + 0.5));
}

int stock_to_bin(double value, int side) {
  return static_cast<int>(std::floor(value * kLastBin / side + 0.5));
}

std::string format_stock_answer(const std::vector<SceneObject>& objects, const StockSides& sides) {
  std::string text = "```json\n[";
  for (size_t i = 0; i < objects.size(); ++i) {
    const auto& [desc, geometry] = objects[i];
    REMATCH_CHECK(geometry.kind == GeometryKind::kBbox2d, "an outline in a stock answer");
    text += fmt::format("{}\n\t{{\"bbox_2d\": [{}, {}, {}, {}], \"label\": {}}}", i > 0 ? "," : "",
                        bin_to_stock(geometry.bins[0], sides.x),
                        bin_to_stock(geometry.bins[1], sides.y),
                        bin_to_stock(geometry.bins[2], sides.x),
                        bin_to_stock(geometry.bins[3], sides.y), python_json_string(desc));
  }
  return text + (objects.empty() ? "]\n```" : "\n]\n```");
}

StockAnswer read_stock_answer(std::string_view text, const StockSides& sides,
                              const std::string& where) {
  std::string_view rest = skip_fence(text);
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size()));
  if (!rest.starts_with('[') && !rest.starts_with('{'))
    refuse(where, fmt::format("it begins with {}", show_json(std::string(rest.substr(0, 40)))));
  const std::string_view value = find_first_value(rest);
  if (mentions_box(text.substr(0, text.size() - rest.size())) ||
      mentions_box(rest.substr(value.size())))
    refuse(where, "there are boxes outside the first list");
  Json document;
  try {
    document = parse_json(value, where);
  } catch (const UserError& error) {
    refuse(where, error.problems().front().what);
  }
  StockAnswer answer;
  EntryReader reader(sides, answer);
  if (document.is_object()) {
    reader.read(document, 0);
  } else {
    for (size_t i = 0; i < document.size(); ++i) reader.read(document[i], i);
  }
  return answer;
}

}  // namespace rematch
