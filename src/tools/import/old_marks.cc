#include "tools/import/answer_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "tools/import/geometry.h"
#include "tools/import/reasons.h"

namespace rematch {
namespace {

struct Marks {
  std::string_view open, close;
  bool is_name;
};
constexpr Marks kMarks[] = {{"<|object_ref_start|>", "<|object_ref_end|>", true},
                            {"<ref>", "</ref>", true},
                            {"<|box_start|>", "<|box_end|>", false},
                            {"<|quad_start|>", "<|quad_end|>", false},
                            {"<box>", "</box>", false},
                            {"<quad>", "</quad>", false},
                            {"<|point_start|>", "<|point_end|>", false},
                            {"<point>", "</point>", false}};

/// The numbers of a text; all else separates them.
Outline read_pairs(std::string_view text) {
  std::vector<double> numbers;
  constexpr std::string_view kDigits = "+-.0123456789eE";
  for (size_t at = 0; at < text.size();) {
    const size_t begin = text.find_first_of("+-.0123456789", at);
    if (begin == text.npos) break;
    const size_t end = std::min(text.find_first_not_of(kDigits, begin), text.size());
    const std::optional<double> number = parse_number(text.substr(begin, end - begin));
    if (!number) return {};
    numbers.push_back(*number);
    at = end;
  }
  return pair_up(numbers);
}

/// Boxes written as JSON, "[[x1, y1, x2, y2], …]"; empty for another form.
std::vector<std::array<double, 4>> read_box_list(std::string_view text) {
  std::vector<std::array<double, 4>> boxes;
  if (!text.starts_with("[[")) return boxes;
  for (const Json& item : parse_json(text, "")) {
    const std::optional<std::array<double, 4>> box = read_four(item);
    if (!box) return {};
    boxes.push_back(*box);
  }
  return boxes;
}

/// The next pair of marks at or after `at`; null if there is none.
const Marks* find_next(std::string_view text, size_t at, size_t& begin) {
  const Marks* next = nullptr;
  begin = text.npos;
  for (const Marks& marks : kMarks) {
    const size_t found = text.find(marks.open, at);
    if (found >= begin) continue;
    begin = found;
    next = &marks;
  }
  return next;
}

}  // namespace

bool has_old_marks(std::string_view text) {
  return std::any_of(std::begin(kMarks), std::end(kMarks), [text](const Marks& marks) {
    return !marks.is_name && text.find(marks.open) != text.npos;
  });
}

std::string unmark_names(std::string& question) {
  std::string name;
  int num_names = 0;
  for (const Marks& marks : kMarks) {
    if (!marks.is_name) continue;
    for (size_t at = question.find(marks.open); at != question.npos;
         at = question.find(marks.open, at)) {
      question.erase(at, marks.open.size());
      const size_t end = question.find(marks.close, at);
      if (end == question.npos) break;
      question.erase(end, marks.close.size());
      name = question.substr(at, end - at);
      ++num_names;
    }
  }
  return num_names == 1 ? name : "";
}

void read_old_marks(std::string_view text, const std::string& where, const ImportOptions& options,
                    ImportedAnswer& answer, Ledger& ledger) {
  answer.is_list = true;
  std::string name;
  bool is_name_used = true;
  size_t begin = 0;
  for (const Marks* marks = find_next(text, 0, begin); marks != nullptr;
       marks = find_next(text, begin, begin)) {
    begin += marks->open.size();
    const size_t end = std::min(text.find(marks->close, begin), text.size());
    const std::string_view inside = text.substr(begin, end - begin);
    begin = end;
    if (marks->is_name) {
      if (!is_name_used) break;
      name = inside;
      is_name_used = false;
      continue;
    }
    is_name_used = true;
    const std::vector<std::array<double, 4>> boxes = read_box_list(inside);
    for (const std::array<double, 4>& box : boxes) {
      answer.objects.push_back(make_box(box, options.boxes.value_or(BoxForm::kCorners)));
      answer.objects.back().desc = name;
    }
    if (!boxes.empty()) continue;
    const Outline points = read_pairs(inside);
    ForeignObject object;
    const bool is_open = end == text.size() && points.size() != 1;
    const char* reason = is_open ? reason::kNoBox : make_shape(points, options, object, ledger);
    if (reason != nullptr) {
      answer.lost.push_back({reason, fmt::format("{}: {}", where, show_json(std::string(inside)))});
      continue;
    }
    object.desc = name;
    answer.objects.push_back(std::move(object));
  }
  if (!is_name_used)
    answer.lost.push_back({reason::kLateName, fmt::format("{}: {}", where, show_json(name))});
}

}  // namespace rematch
