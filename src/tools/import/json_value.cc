#include "tools/import/json_value.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "learn/data/foreign_file.h"
#include "tools/import/geometry.h"
#include "tools/import/reasons.h"
#include "tools/import/source_files.h"

namespace rematch {

const Json* find_member(const Json& value, const char* key) {
  if (!value.is_object()) return nullptr;
  const auto found = value.find(key);
  return found == value.end() || found->is_null() ? nullptr : &*found;
}

const Json* find_member(const Json& value, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (const Json* member = find_member(value, key)) return member;
  }
  return nullptr;
}

std::string text_member(const Json& value, std::initializer_list<const char*> keys) {
  const Json* member = find_member(value, keys);
  return member != nullptr && member->is_string() ? member->get<std::string>() : "";
}

const Json* name_member(const Json& entry, std::initializer_list<const char*> keys,
                        Ledger& ledger) {
  const Json* name = find_member(entry, keys);
  for (const char* key : keys) {
    const Json* other = find_member(entry, key);
    if (other != nullptr && other->is_string() && name->is_string() && *other != *name)
      ledger.note(fmt::format("other names of named objects (\"{}\"), left out", key));
  }
  return name;
}

std::optional<std::string> read_id(const Json* value) {
  if (value == nullptr) return std::nullopt;
  if (value->is_string() && *value != "") return value->get<std::string>();
  if (value->is_number_integer()) return value->dump();
  if (value->is_number_float() && *value == std::floor(value->get<double>()))
    return fmt::format("{:.0f}", value->get<double>());
  return std::nullopt;
}

std::optional<double> number_member(const Json& value, const char* key) {
  const Json* member = find_member(value, key);
  return member == nullptr ? std::nullopt : read_number(*member);
}

std::string image_path_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (find_member(value, "bytes") != nullptr) return "data:image/";
  return text_member(value, {"path", "url", "file_name"});
}

Json parse_record(std::string_view text) {
  try {
    return parse_written_json(text, "");
  } catch (const UserError& error) {
    const Problem& problem = error.problems().front();
    throw LeftOut{fmt::format("{}|{}", reason::kDamagedRecord, problem.fix), problem.what};
  }
}

void read_json_records(const std::string& path, std::string_view bytes,
                       const std::function<void(const Json&, const std::string& where)>& read,
                       Ledger& ledger) {
  const std::string_view whole = text_of(bytes, path);
  const size_t first = whole.find_first_not_of(" \t\r\n");
  if (first != whole.npos && whole[first] == '[') {
    const Json list = parse_written_json(whole, path);
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string where = fmt::format("{}, record {}", path, i + 1);
      ledger.attempt(where, [&] { read(list[i], where); });
    }
    return;
  }
  int64_t number = 0;
  for (const std::string& line : split(whole, '\n')) {
    throw_if_interrupted();
    const std::string where = fmt::format("{}:{}", path, ++number);
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    ledger.attempt(where, [&] { read(parse_record(line), where); });
  }
}

}  // namespace rematch
