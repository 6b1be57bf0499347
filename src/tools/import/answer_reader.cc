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

bool has_written_box(std::string_view text) {
  for (size_t at = text.find('['); at != text.npos; at = text.find('[', at + 1)) {
    const size_t end = text.find_first_not_of("+-.0123456789eE, \t\r\n", at + 1);
    const std::string_view inside = text.substr(at, end == text.npos ? end : end - at);
    if (end != text.npos && text[end] == ']' && inside.find(',') != inside.npos) return true;
  }
  return has_geometry_key(text);
}

bool mentions_geometry(std::string_view text) {
  return has_written_box(text) || has_old_marks(text);
}

ImportedAnswer read_answer(std::string_view text, const ForeignImage& image, ForeignSet& set) {
  ImportedAnswer answer{.image = image};
  try {
    if (!has_old_marks(text))
      read_json_answer(text, answer, set);
    else if (has_geometry_key(text))
      answer = {.image = image,
                .reason = reason::kSeveralLists,
                .problem = "it has marks and a list of boxes"};
    else
      read_old_marks(text, answer, set);
  } catch (const UserError& error) {
    answer = {.image = image, .problem = error.problems().front().what};
  }
  return answer;
}

}  // namespace rematch
