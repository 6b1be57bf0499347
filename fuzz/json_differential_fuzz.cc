// Both readers of JSON against nlohmann's: they accept what it accepts and refuse what it refuses,
// but for what they refuse on purpose.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "learn/estep/parse/json_reader.h"

namespace {

enum class Verdict { kAccepted, kRefused, kOverflow };

Verdict nlohmann_says(std::string_view text) {
  try {
    [[maybe_unused]] const auto value = nlohmann::json::parse(text.begin(), text.end());
    return Verdict::kAccepted;
  } catch (const nlohmann::json::out_of_range&) {
    return Verdict::kOverflow;  // a number beyond a double, which the grammar allows
  } catch (const nlohmann::json::exception&) {
    return Verdict::kRefused;
  }
}

// Files: what is refused beyond the grammar says why.
void compare_documents(std::string_view text) {
  const Verdict verdict = nlohmann_says(text);
  std::string reason;
  try {
    rematch::parse_json(text, "fuzz");
  } catch (const rematch::UserError& error) {
    reason = error.problems().front().what;
  }
  const bool on_purpose = reason.find("appears twice") != std::string::npos ||
                          reason.find("nested deeper") != std::string::npos ||
                          reason == "a zero byte";
  if (reason.empty() ? verdict != Verdict::kAccepted : verdict == Verdict::kAccepted && !on_purpose)
    std::abort();
}

// Answers: one object, what follows it is ignored; nesting is limited, a byte order mark is
// malformed.
void compare_answers(std::string_view text) {
  if (text.find('\0') != std::string_view::npos || text.starts_with("\xEF\xBB\xBF")) return;
  const rematch::JsonDocument document = rematch::read_json_object(text, true);
  if (document.status == rematch::ParseStatus::kComplete) {
    if (nlohmann_says(text.substr(0, document.top.end)) == Verdict::kRefused) std::abort();
    return;
  }
  if (nlohmann_says(text) != Verdict::kAccepted) return;
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_deep = std::count_if(text.begin(), text.end(), [](char c) {
                         return c == '[' || c == '{';
                       }) >= rematch::kMaxJsonDepth;
  if (text[first] == '{' && !is_deep) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  compare_documents(text);
  compare_answers(text);
  return 0;
}
