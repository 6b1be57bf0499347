#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/import/chat_steps.h"

namespace rematch {
namespace {

struct Marks {
  std::string_view open, close;
  bool is_name = false;
};
constexpr Marks kMarks[] = {{"<|object_ref_start|>", "<|object_ref_end|>", true},
                            {"<ref>", "</ref>", true},
                            {"<|box_start|>", "<|box_end|>"},
                            {"<|quad_start|>", "<|quad_end|>"},
                            {"<box>", "</box>"},
                            {"<quad>", "</quad>"},
                            {"<|point_start|>", "<|point_end|>"},
                            {"<point>", "</point>"}};

/// The points of each box between two marks: "(x, y), (x, y)", or JSON "[[x1, y1, x2, y2], …]".
/// @throws UserError (data) for JSON that cannot be read
std::vector<Outline> read_shapes(std::string_view text) {
  if (!text.starts_with("[[")) return {read_written_points(text)};
  std::vector<Outline> shapes;
  for (const Json& item : parse_json(text, "")) shapes.push_back(read_points(item));
  const bool are_points =
      std::ranges::all_of(shapes, [](const Outline& shape) { return shape.size() == 1; });
  return are_points ? std::vector<Outline>{read_written_points(text)} : shapes;
}

/// The next pair of marks at or after `at`, whose opening is there then; null if there is none.
const Marks* find_next(std::string_view text, size_t& at) {
  const Marks* next = nullptr;
  size_t begin = text.npos;
  for (const Marks& marks : kMarks) {
    const size_t found = text.find(marks.open, at);
    if (found < begin) next = &marks;
    begin = std::min(begin, found);
  }
  at = begin;
  return next;
}

}  // namespace

bool has_old_marks(std::string_view text) {
  return std::ranges::any_of(kMarks, [text](const Marks& marks) {
    return !marks.is_name && text.find(marks.open) != text.npos;
  });
}

std::string unmark_names(std::string& question) {
  std::string name;
  int num_names = 0;
  for (const Marks& marks : kMarks) {
    size_t at = 0, end = 0;
    while (marks.is_name && (at = question.find(marks.open)) != question.npos &&
           (end = question.find(marks.close, at)) != question.npos) {
      name = question.substr(at + marks.open.size(), end - at - marks.open.size());
      question.replace(at, end + marks.close.size() - at, name);
      ++num_names;
    }
  }
  return num_names == 1 ? name : "";
}

void read_old_marks(std::string_view text, ImportedAnswer& answer, ForeignSet& set) {
  answer.is_list = true;
  const auto place = [&](const std::string& inside) {
    return fmt::format("{}: {}", answer.image.where, show_json(inside));
  };
  std::string name;
  bool is_name_used = true;
  size_t at = 0;
  while (const Marks* marks = find_next(text, at)) {
    const size_t begin = at + marks->open.size(), end = text.find(marks->close, begin);
    const std::string inside(text.substr(begin, end - begin));
    at = std::min(end, text.size());
    if (marks->is_name && !is_name_used) break;
    if (marks->is_name) name = inside;
    is_name_used = !marks->is_name;
    for (const Outline& points : marks->is_name ? std::vector<Outline>() : read_shapes(inside)) {
      ForeignEntry entry{.place = place(inside), .name = name};
      set_points(entry, points);
      if (end == text.npos) entry.reason = reason::kNoBox;  // it stays open
      answer.image.add(entry, set);
    }
  }
  if (!is_name_used) answer.image.lose(reason::kLateName, place(name));
}

}  // namespace rematch
