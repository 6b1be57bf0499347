#include "learn/evaluate/eval_set.h"

#include <fmt/core.h>

#include "base/content_key.h"

namespace rematch {

std::string eval_set_text(const EvalSet& set) {
  const std::string prompts =
      fmt::format("{}:{}{}", set.system_prompt.size(), set.system_prompt, set.user_prompt);
  return fmt::format("{} records {}, labels {}, prompts {}{}", set.num_records, set.records,
                     set.labels, content_hash_of(prompts),
                     set.scoring.empty() ? "" : ", scoring " + content_hash_of(set.scoring));
}

namespace {

/// The text from the first occurrence of `begin` on, up to `end`; either may be absent.
std::string part(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = begin.empty() ? 0 : text.find(begin), to = text.rfind(end);
  if (from == text.npos) return "";
  return text.substr(from, to == text.npos || to < from ? text.npos : to - from);
}

}  // namespace

std::string shown_eval_set(const std::string& text) {
  const std::string unit = " records";
  const size_t at = text.find(unit);
  return at == text.npos ? "" : text.substr(0, at + unit.size());
}

Strings eval_set_differences(const std::string& a, const std::string& b) {
  Strings differences;
  const auto compare = [&](const char* begin, const char* end, const char* name) {
    if (part(a, begin, end) != part(b, begin, end)) differences.emplace_back(name);
  };
  compare("", ", labels ", "records");
  compare(", labels ", ", prompts ", "label_match");
  compare(", prompts ", ", scoring ", "prompts");
  compare(", scoring ", "\n", "decoding or matching");
  return differences;
}

}  // namespace rematch
