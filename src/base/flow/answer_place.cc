#include "base/flow/answer_place.h"

#include <algorithm>
#include <optional>

namespace rematch {
namespace {

constexpr std::string_view kThinkOpen = "<think>", kThinkClose = "</think>";
constexpr std::string_view kAnswerOpen = "<answer>", kAnswerClose = "</answer>";
constexpr std::string_view kFence = "```", kJsonFence = "```json";
constexpr std::string_view kSpace = " \t\r\n";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Offset of the first byte that is not white space, at or after `at`.
size_t skip_space(std::string_view text, size_t at) {
  return std::min(text.find_first_not_of(kSpace, at), text.size());
}

/// Offset after the fence that opens the list; nullopt without one. A plain fence counts if a
/// bracket follows it.
std::optional<size_t> find_fence(std::string_view text, size_t begin) {
  if (const size_t json = text.find(kJsonFence, begin); json != text.npos)
    return json + kJsonFence.size();
  for (size_t at = text.find(kFence, begin); at != text.npos; at = text.find(kFence, at)) {
    const bool is_first = at == skip_space(text, begin);
    at += kFence.size();
    while (at < text.size() && is_letter(text[at])) ++at;  // a language other than json
    const size_t first = skip_space(text, at);
    if (first == text.size() ? is_first : text[first] == '[' || text[first] == '{') return at;
  }
  return std::nullopt;
}

/// True if a list of objects, or one object, opens at `at`. An empty list counts only at the end.
bool opens_list(std::string_view text, size_t at) {
  const size_t next = skip_space(text, at + 1);
  if (text[at] == '{') return next < text.size() && text[next] == '"';
  if (text[at] != '[') return false;
  if (next < text.size() && text[next] == ']') return closes_answer(text.substr(next + 1));
  return next < text.size() && text[next] == '{';
}

/// Offset of the list in unfenced text; `begin` if there is none.
size_t find_list(std::string_view text, size_t begin) {
  const size_t first = skip_space(text, begin);
  if (first == text.size() || text[first] == '[' || text[first] == '{') return begin;
  for (size_t at = text.find_first_of("[{", first); at != text.npos;
       at = text.find_first_of("[{", at + 1)) {
    if (opens_list(text, at)) return at;
  }
  return begin;
}

/// The text that counts: after a think block and `<answer>`.
AnswerPlace find_text(std::string_view text, bool starts_in_think) {
  size_t begin = 0;
  const size_t close = text.rfind(kThinkClose);
  if (close != text.npos) begin = close + kThinkClose.size();
  const bool opens_think = text.substr(skip_space(text, begin)).starts_with(kThinkOpen);
  if (opens_think || (starts_in_think && close == text.npos))
    return {.begin = text.size(), .start = text.size(), .in_think = true};
  if (const size_t answer = text.rfind(kAnswerOpen); answer != text.npos && answer >= begin)
    begin = answer + kAnswerOpen.size();
  return {.begin = begin, .start = begin};
}

}  // namespace

AnswerPlace find_answer(std::string_view text, bool starts_in_think) {
  AnswerPlace place = find_text(text, starts_in_think);
  const size_t fence = text.find(kJsonFence, place.begin);
  if (fence != text.npos) place.begin = fence + kJsonFence.size();
  return place;
}

AnswerPlace find_written_answer(std::string_view text) {
  AnswerPlace place = find_text(text, /*starts_in_think=*/false);
  if (place.in_think) return place;
  const std::optional<size_t> fence = find_fence(text, place.begin);
  place.begin = fence ? *fence : find_list(text, place.begin);
  return place;
}

bool closes_answer(std::string_view rest) {
  for (size_t at = skip_space(rest, 0); at < rest.size(); at = skip_space(rest, at)) {
    const std::string_view left = rest.substr(at);
    if (left.starts_with(kFence)) {
      at += kFence.size();
    } else if (left.starts_with(kAnswerClose)) {
      at += kAnswerClose.size();
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace rematch
