#include "tools/import/answer_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/flow/answer_place.h"
#include "base/json.h"
#include "base/text.h"
#include "tools/import/geometry.h"
#include "tools/import/json_value.h"
#include "tools/import/reasons.h"

namespace rematch {
namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr const char* kNameKeys[] = {"label",        "desc", "name", "category", "class",
                                     "text_content", "text", "ref",  "caption",  "object"};
constexpr const char* kBoxKeys[] = {"bbox_2d", "bbox", "box", "box_2d"};
constexpr const char* kOutlineKeys[] = {"points",     "poly_2d", "poly",        "polygon",
                                        "polygon_2d", "quad",    "segmentation"};
constexpr const char* kPointKeys[] = {"point_2d", "point", "points_2d"};

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

/// True if a list of two numbers or more is written in the text.
bool has_number_list(std::string_view text) {
  for (size_t at = text.find('['); at != text.npos; at = text.find('[', at + 1)) {
    const size_t end = text.find_first_not_of("+-.0123456789eE, \t\r\n", at + 1);
    const std::string_view inside = text.substr(at, end == text.npos ? end : end - at);
    if (end != text.npos && text[end] == ']' && inside.find(',') != inside.npos) return true;
  }
  return false;
}

/// True if the text has a member of a geometry, one that is read or one that is refused.
bool has_geometry_key(std::string_view text) {
  for (const std::span<const char* const> keys :
       {std::span<const char* const>(kBoxKeys), {kOutlineKeys}, {kPointKeys}}) {
    for (const char* key : keys) {
      if (text.find(fmt::format("\"{}\"", key)) != text.npos) return true;
    }
  }
  return false;
}

bool mentions_geometry(std::string_view text) {
  return has_geometry_key(text) || has_number_list(text) || has_old_marks(text);
}

/// Reads the entries of one answer.
class EntryReader {
 public:
  EntryReader(const std::string& where, const ImportOptions& options, const GeometryOf& placeholder,
              Ledger& ledger, ImportedAnswer& answer)
      : where_(where),
        options_(options),
        placeholder_(placeholder),
        ledger_(ledger),
        answer_(answer) {}

  void read(const Json& entry) {
    ++number_;
    if (!entry.is_object())
      return lose(reason::kNoBox, fmt::format("not an object: {}", show_json(entry)));
    if (has_inner_box(entry)) return lose(reason::kInnerBox, show_json(entry));
    ForeignObject object;
    if (!read_geometry(entry, object)) return;
    for (const char* key : kNameKeys) {
      const auto name = entry.find(key);
      if (name == entry.end()) continue;
      if (!name->is_string() || python_strip(name->get<std::string>()).empty())
        return lose(reason::kBadName, fmt::format("\"{}\" is {}", key, show_json(*name)));
      object.desc = name->get<std::string>();
      break;
    }
    answer_.objects.push_back(std::move(object));
  }

 private:
  /// True if a member holds entries with boxes, such as the parts of an object.
  static bool has_inner_box(const Json& entry) {
    return std::any_of(entry.begin(), entry.end(), [](const Json& member) {
      const bool is_nested = member.is_object() ||
                             (member.is_array() && !member.empty() && member.front().is_object());
      return is_nested &&
             has_geometry_key(member.dump(-1, ' ', false, Json::error_handler_t::replace));
    });
  }

  void lose(const char* reason, const std::string& what) {
    answer_.lost.push_back({reason, fmt::format("{}: entry {}: {}", where_, number_, what)});
  }

  /// The numbers of a member, or those of its placeholder.
  Json value_of(const Json& value) const {
    if (placeholder_) {
      if (std::optional<Json> filled = placeholder_(value)) return *std::move(filled);
    }
    return value;
  }

  bool read_geometry(const Json& entry, ForeignObject& object) {
    if (const Json* written = find_member(entry, {"bbox_2d", "bbox", "box"})) {
      const Json value = value_of(*written);
      const char* reason = make_shape(read_points(value), options_, object, ledger_);
      if (reason != nullptr) lose(reason, fmt::format("not four numbers: {}", show_json(value)));
      return reason == nullptr;
    }
    for (const char* key : kOutlineKeys) {
      const Json* written = find_member(entry, key);
      if (written == nullptr) continue;
      const Outline points = read_points(value_of(*written));
      if (points.size() >= 4 || (points.size() == 3 && std::string_view(key) != "points")) {
        object = make_outline(points, options_.polygons, "outlines", ledger_);
        return true;
      }
      lose(points.empty() ? reason::kNoBox : reason::kPoint,
           fmt::format("\"{}\": {}", key, show_json(*written)));
      return false;
    }
    if (const Json* point = find_member(entry, {"point_2d", "point", "points_2d"})) {
      lose(reason::kPoint, show_json(*point));
    } else if (const Json* other = find_member(entry, "box_2d")) {
      lose("a \"box_2d\", whose order is y1, x1, y2, x2", show_json(*other));
    } else {
      lose(reason::kNoBox, fmt::format("no \"bbox_2d\": {}", show_json(entry)));
    }
    return false;
  }

  const std::string& where_;
  const ImportOptions& options_;
  const GeometryOf& placeholder_;
  Ledger& ledger_;
  ImportedAnswer& answer_;
  size_t number_ = 0;
};

/// Entries without a list around them, separated by white space or commas; empty if something else
/// is between them.
/// @param end  receives the offset after the last one
std::vector<Json> read_bare_entries(std::string_view text, const std::string& where, size_t& end) {
  std::vector<Json> entries;
  size_t at = 0;
  while (at < text.size() && text[at] == '{') {
    const std::string_view value = find_first_value(text.substr(at));
    entries.push_back(parse_json(value, where));
    end = at + value.size();
    at = std::min(text.find_first_not_of(" \t\r\n,", end), text.size());
  }
  return entries;
}

/// Reads the JSON of an answer.
/// @throws UserError (data) if it is not JSON
void read_json_answer(std::string_view text, EntryReader& reader, const std::string& where,
                      ImportedAnswer& answer) {
  const size_t begin = find_written_answer(text).begin;
  std::string_view rest = text.substr(begin);
  rest.remove_prefix(std::min(rest.find_first_not_of(kSpace), rest.size()));
  if (!rest.starts_with('[') && !rest.starts_with('{')) {
    answer.problem = fmt::format("it begins with {}", show_json(std::string(rest.substr(0, 40))));
    return;
  }
  std::vector<Json> entries;
  size_t end = 0;
  if (rest.starts_with('{')) {
    entries = read_bare_entries(rest, where, end);
  } else {
    const std::string_view value = find_first_value(rest);
    end = value.size();
    const Json list = parse_json(value, where);
    if (list.size() == 4 && !list.front().is_array() && read_four(list)) {
      entries.push_back({{"bbox_2d", list}});  // one box alone
    } else {
      entries.assign(list.begin(), list.end());
    }
  }
  if (mentions_geometry(text.substr(0, begin)) || mentions_geometry(rest.substr(end))) {
    answer.problem = "there are boxes outside the first list";
    return;
  }
  answer.is_list = true;
  for (const Json& entry : entries) reader.read(entry);
}

}  // namespace

ImportedAnswer read_answer(std::string_view text, const std::string& where,
                           const ImportOptions& options, const GeometryOf& placeholder,
                           Ledger& ledger) {
  ImportedAnswer answer;
  if (has_old_marks(text)) {
    if (has_geometry_key(text)) {
      answer.problem = "it has marks and a list of boxes";
      return answer;
    }
    read_old_marks(text, where, options, answer, ledger);
    return answer;
  }
  EntryReader reader(where, options, placeholder, ledger, answer);
  try {
    read_json_answer(text, reader, where, answer);
  } catch (const UserError& error) {
    answer.problem = error.problems().front().what;
  }
  return answer;
}

}  // namespace rematch
