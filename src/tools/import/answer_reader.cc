#include "tools/import/chat_steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/flow/answer_place.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr const char* kGeometries =
    "bbox_2d bbox box points poly_2d poly polygon polygon_2d quad segmentation point_2d point "
    "points_2d box_2d";

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

/// True for an answer in the marks of older models: `<ref>…</ref><box>(x1,y1),(x2,y2)</box>`, or
/// `<|object_ref_start|>…<|box_start|>…<|box_end|>`.
bool has_old_marks(std::string_view text) {
  return std::ranges::any_of(kMarks, [text](const Marks& marks) {
    return !marks.is_name && text.find(marks.open) != text.npos;
  });
}

/// The length of the JSON value at the start of the text by its brackets; all if they stay open.
size_t value_length(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') ++i;
    if (c == '"') in_string = !in_string;
    if (in_string) continue;
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && --depth == 0) return i + 1;
  }
  return text.size();
}

bool has_geometry_key(std::string_view text) {
  const Strings keys = split(kGeometries, ' ');
  return std::ranges::any_of(
      keys, [text](const std::string& key) { return text.find('"' + key + '"') != text.npos; });
}

/// True if the text has a member of a geometry, or a list of two numbers or more.
bool has_written_box(std::string_view text) {
  for (size_t at = text.find('['); at != text.npos; at = text.find('[', at + 1)) {
    const size_t end = text.find_first_not_of("+-.0123456789eE, \t\r\n", at + 1);
    const std::string_view inside = text.substr(at, end == text.npos ? end : end - at);
    if (end != text.npos && text[end] == ']' && inside.find(',') != inside.npos) return true;
  }
  return has_geometry_key(text);
}

/// Reads an answer in old marks. Four numbers are a box, eight or more an outline; a box belongs to
/// the last name before it.
void read_old_marks(std::string_view text, ImportedAnswer& answer, ForeignSet& set) {
  const auto place = [&](const std::string& inside) {
    return fmt::format("{}: {}", answer.image.where, show_json(inside));
  };
  std::string name, others;
  bool is_name_used = true;
  size_t at = 0, end = 0;
  while (const Marks* marks = find_next(text, at)) {
    others += text.substr(end, at - end);
    const size_t begin = at + marks->open.size(), close = text.find(marks->close, begin);
    const std::string inside(text.substr(begin, close - begin));
    at = end = std::min(close, text.size());
    if (marks->is_name && !is_name_used) break;
    if (marks->is_name) name = inside;
    is_name_used = !marks->is_name;
    for (const Outline& points : marks->is_name ? std::vector<Outline>() : read_shapes(inside)) {
      ForeignEntry entry{.place = place(inside), .name = name};
      set_points(entry, points);
      if (close == text.npos) entry.reason = reason::kNoBox;  // it stays open
      answer.image.add(entry, set);
    }
  }
  answer.is_list = !has_written_box(others.append(text.substr(end)));
  answer.reason = reason::kSeveralLists;
  answer.problem = "it has marks and a list of boxes";
  if (!is_name_used) answer.image.lose(reason::kLateName, place(name));
}

/// True if a member holds entries with boxes, such as the parts of an object.
bool has_inner_box(const Json& entry) {
  return std::ranges::any_of(entry, [](const Json& member) {
    const Json& inner = member.is_array() && !member.empty() ? member.front() : member;
    return inner.is_object() &&
           has_geometry_key(member.dump(-1, ' ', false, Json::error_handler_t::replace));
  });
}

void add_entry(const Json& value, ImportedAnswer& answer, ForeignSet& set) {
  ForeignEntry entry = read_entry(value,
                                  fmt::format("{}: entry {}: {}", answer.image.where,
                                              answer.num_entries() + 1, show_json(value)),
                                  BoxForm::kCorners, set.ledger);
  if (has_inner_box(value)) entry.reason = reason::kInnerBox;
  const Json& name = name_member(value,
                                 {"label", "desc", "name", "category", "class", "text_content",
                                  "text", "ref", "caption", "object"},
                                 set.ledger);
  if (name.is_string()) entry.name = name.get<std::string>();
  if (!name.is_null() && entry.reason.empty() && python_strip(*entry.name).empty())
    entry.reason = reason::kBadName;
  answer.image.add(entry, set);
}

/// Reads the JSON of an answer: a list, or entries without one, separated by white space or commas.
/// @throws UserError (data) if it is not JSON
void read_json_answer(std::string_view text, ImportedAnswer& answer, ForeignSet& set) {
  const size_t begin = find_written_answer(text).begin;
  std::string_view rest = text.substr(begin);
  rest.remove_prefix(std::min(rest.find_first_not_of(kSpace), rest.size()));
  if (!rest.starts_with('[') && !rest.starts_with('{')) {
    answer.problem = fmt::format("it begins with {}", show_json(std::string(rest.substr(0, 40))));
    return;
  }
  Json entries = Json::array();
  const bool is_list = rest.starts_with('[');
  do {
    const size_t length = value_length(rest);
    entries.push_back(parse_json(rest.substr(0, length), answer.image.where));
    rest.remove_prefix(length);
    const size_t next = rest.find_first_not_of(" \t\r\n,");
    if (!is_list && next != rest.npos && rest[next] == '{') rest.remove_prefix(next);
  } while (!is_list && rest.starts_with('{'));
  if (mentions_geometry(text.substr(0, begin)) || mentions_geometry(rest)) {
    answer.reason = reason::kSeveralLists;
    answer.problem = "there are boxes outside the first list";
    return;
  }
  answer.is_list = true;
  if (is_list) entries = Json(entries[0]);
  if (is_list && entries.size() == 4 && !entries.front().is_array() &&
      !read_points(entries).empty())
    entries = Json::array({Json{{"bbox_2d", entries}}});  // one box alone
  for (const Json& entry : entries) add_entry(entry, answer, set);
}

}  // namespace

bool mentions_geometry(std::string_view text) {
  return has_written_box(text) || has_old_marks(text);
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

ImportedAnswer read_answer(std::string_view text, const ForeignImage& image, ForeignSet& set) {
  ImportedAnswer answer{.image = image};
  try {
    if (has_old_marks(text))
      read_old_marks(text, answer, set);
    else
      read_json_answer(text, answer, set);
  } catch (const UserError& error) {
    answer = {.problem = error.problems().front().what};
  }
  if (!answer.is_list) answer.image = image;
  return answer;
}

}  // namespace rematch
