#include "learn/data/foreign_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/utf16.h"

namespace rematch {
namespace {

constexpr size_t kMostShown = 80;

/// The names of an object's members, "images, objects"; "" for what is no JSON object.
/// @param has_objects  receives whether it may be a record with faults
std::string member_names(std::string_view line, bool& has_objects) {
  try {
    const Json value = parse_json(line, "line 1");
    if (!value.is_object()) return "";
    Strings names;
    for (const auto& member : value.items()) names.push_back(member.key());
    has_objects = value.contains("objects") && value["objects"].is_array() &&
                  !value.contains("messages") && !value.contains("conversations");
    return join(names, ", ");
  } catch (const UserError&) {
    return "";
  }
}

}  // namespace

void require_utf8(std::string_view text, const std::string& where, const std::string& file) {
  if (is_valid_utf8(text)) return;
  throw data_error({.error = "the text is not UTF-8",
                    .where = where,
                    .what = "a byte of it belongs to no character",
                    .fix = fmt::format("convert it from the encoding that it has (GBK, ISO-8859-1, "
                                       "…): iconv -f GBK -t UTF-8 {} > NEW",
                                       file)});
}

Json parse_written_json(std::string_view text, const std::string& where) {
  require_utf8(text, where);
  return parse_json(text, where);
}

void refuse_foreign_file(const std::string& path, std::string_view bytes) {
  constexpr const char* kSpace = " \t\r\n";
  refuse_utf16(bytes, path);
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  bytes.remove_prefix(std::min(bytes.find_first_not_of(kSpace), bytes.size()));
  if (bytes.empty()) return;
  std::string_view line = bytes.substr(0, bytes.find('\n'));
  line = line.substr(0, line.find_last_not_of(kSpace) + 1);
  bool has_objects = false;
  const std::string names = member_names(line, has_objects);
  const bool is_damaged =
      names.empty() && line.starts_with('{') && (line.ends_with('}') || line.ends_with("},"));
  if (has_objects || is_damaged) return;
  throw data_error(
      {.error = "this file is not a JSONL of records",
       .where = path,
       .what =
           fmt::format("it begins with {}; each line of a JSONL is a record with images, "
                       "objects, width and height",
                       !names.empty()        ? "an object of " + names
                       : is_valid_utf8(line) ? fmt::format("`{}`", shown_start(line, kMostShown))
                                             : "bytes that are not UTF-8"),
       .fix = bytes.starts_with("\x1f\x8b")  // gzip
                  ? "unpack it: gunzip --keep " + shell_word(path)
                  : fmt::format("records become lines with jq -c {} {} > NEW.jsonl; {}",
                                line.starts_with('[') ? "'.[]'" : ".", shell_word(path),
                                kImportAdvice)});
}

}  // namespace rematch
