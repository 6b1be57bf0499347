// Any bytes as the value of `--set KEY=VALUE`: refused, or taken as a whole. Between quotes every
// text comes back as it was.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "program/config/override.h"

namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

rematch::Node read(const std::string& value, std::vector<rematch::Problem>& problems) {
  const rematch::Node root = rematch::read_override("k=" + value, problems);
  if (!problems.empty()) return {};
  const rematch::Node* node = root.find("k");
  REMATCH_CHECK(node != nullptr, "the key is there");
  return *node;
}

bool has_control_characters(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) return true;
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string value(reinterpret_cast<const char*>(data), size < 4096 ? size : 4096);
  std::vector<rematch::Problem> problems;
  const rematch::Node node = read(value, problems);
  if (problems.empty() && node.is_null()) {
    const std::string_view text = trimmed(value);
    REMATCH_CHECK(text.empty() || text == "~" || text.starts_with("!!") || text == "null" ||
                      text == "Null" || text == "NULL",
                  "null stands for nothing else");
  }
  if (problems.empty() && node.is_scalar() && !node.quoted && !trimmed(value).starts_with("!!"))
    REMATCH_CHECK(node.scalar == trimmed(value), "a plain value is taken as a whole");
  for (const rematch::Problem& problem : problems)
    REMATCH_CHECK(problem.where.starts_with("--set k") && !problem.fix.empty(), problem.where);

  if (!rematch::is_valid_utf8(value) || has_control_characters(value) ||
      value.find("\xEF\xBB\xBF") != std::string::npos)
    return 0;
  std::vector<rematch::Problem> none;
  const rematch::Node quoted = read(rematch::python_json_string(value), none);
  REMATCH_CHECK(none.empty() && quoted.is_scalar() && quoted.scalar == value,
                "quotes keep every text");
  return 0;
}
