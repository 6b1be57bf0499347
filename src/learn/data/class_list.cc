#include "learn/data/class_list.h"

#include <algorithm>
#include <set>

#include "base/text.h"

namespace rematch {
namespace {

constexpr size_t kMostBytes = 40;  // of a name that no object has
constexpr std::string_view kMarks[] = {",", ";", "|", "/", "\n", "、", "，", "；"};
constexpr std::string_view kWords[] = {"and ", "or "};
constexpr std::string_view kOpening[] = {":", "[", "(", "{", "：", "（"};
constexpr std::string_view kClosing[] = {".", "]", ")", "}", "?", "!", "\n", "<", "。", "）"};
constexpr std::string_view kQuotes = "\"'`", kAround = " \t\"'`*-", kBefore = " \t\n\"'`*-";

bool is_word(char c) { return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'); }

/// Bytes of the text at `at` that is one of `texts`; 0: none.
template <size_t N>
size_t length_of(const std::string_view (&texts)[N], std::string_view prompt, size_t at) {
  for (const std::string_view text : texts) {
    if (prompt.substr(at).starts_with(text)) return text.size();
  }
  return 0;
}

size_t skip(std::string_view characters, std::string_view prompt, size_t at) {
  return std::min(prompt.find_first_not_of(characters, at), prompt.size());
}

/// Bytes of the longest known name at `at`; 0: none.
size_t known_at(std::string_view prompt, size_t at, const ClassNames& classes) {
  for (size_t size = std::min(classes.longest(), prompt.size() - at); size > 0; --size) {
    const size_t end = at + size;
    const bool splits = end < prompt.size() && is_word(prompt[end]) && is_word(prompt[end - 1]);
    if (!splits && classes.has(prompt.substr(at, size))) return size;
  }
  return 0;
}

/// True where a list may end.
bool closes(std::string_view prompt, size_t at) {
  const size_t end = skip(kQuotes, prompt, at);
  return end == prompt.size() || length_of(kClosing, prompt, end) > 0;
}

/// Bytes of a name that is not known, up to the next mark; 0: none.
size_t unknown_at(std::string_view prompt, size_t at) {
  size_t end = at;
  while (!closes(prompt, end) && length_of(kMarks, prompt, skip(kQuotes, prompt, end)) == 0 &&
         length_of(kOpening, prompt, end) == 0)
    ++end;
  while (end > at && prompt[end - 1] == ' ') --end;
  return end - at <= kMostBytes ? end - at : 0;
}

/// The end of the marks, words, quotes and spaces between two names; `at`: there are none.
size_t skip_gap(std::string_view prompt, size_t at, bool& has_word) {
  bool has_mark = has_word = false;
  for (size_t end = at; end < prompt.size();) {
    const size_t mark = length_of(kMarks, prompt, end),
                 word = is_word(prompt[end - 1]) ? 0 : length_of(kWords, prompt, end);
    has_word = has_word || word > 0;
    has_mark = has_mark || mark + word > 0;
    const size_t next = mark + word > 0 ? end + mark + word : skip(kAround, prompt, end);
    if (next == end) return has_mark ? end : at;
    end = next;
  }
  return at;
}

/// @param is_marked  after a colon or an opening bracket
std::optional<ClassList> list_at(std::string_view prompt, size_t at, const ClassNames& classes,
                                 bool is_marked) {
  ClassList list{.begin = at, .end = at};
  bool is_known = false, after_word = false;
  while (at < prompt.size()) {
    size_t size = known_at(prompt, at, classes);
    is_known = is_known || size > 0;
    if (size == 0 && is_marked && !after_word) size = unknown_at(prompt, at);
    if (size == 0) break;
    list.names.emplace_back(prompt.substr(at, size));
    list.end = at + size;
    at = skip_gap(prompt, list.end, after_word);
    if (at == list.end) break;
    const std::string& gap = list.gaps.emplace_back(prompt.substr(list.end, at - list.end));
    // The line after a list is no name.
    after_word = after_word || (gap.find('\n') != gap.npos && gap.find_first_of("-*") == gap.npos);
  }
  if (!list.names.empty()) list.gaps.resize(list.names.size() - 1);
  const bool is_closed = is_marked && closes(prompt, list.end);
  return is_known && (is_closed || list.names.size() > 1) ? std::optional(list) : std::nullopt;
}

}  // namespace

ClassNames::ClassNames(const std::vector<Sample>& samples) {
  std::set<std::string> names;
  for (const Sample& sample : samples) {
    for (const SceneObject& object : sample.objects) names.insert(object.desc);
  }
  names_.assign(names.begin(), names.end());
  for (const std::string& name : names_) {
    lower_.insert(lower_case(name));
    longest_ = std::max(longest_, name.size());
  }
}

bool ClassNames::has(std::string_view name) const {
  return lower_.contains(lower_case(std::string(name)));
}

std::optional<ClassList> find_class_list(std::string_view prompt, const ClassNames& classes) {
  std::optional<ClassList> best;
  for (size_t at = 0; at < prompt.size(); ++at) {
    const size_t opening = length_of(kOpening, prompt, at);
    const bool begins_word = at == 0 || !is_word(prompt[at - 1]);
    if (opening == 0 && (!begins_word || known_at(prompt, at, classes) == 0)) continue;
    const size_t begin = opening == 0 ? at : skip(kBefore, prompt, at + opening);
    std::optional<ClassList> list = list_at(prompt, begin, classes, opening > 0);
    if (list && (!best || list->names.size() > best->names.size())) best = std::move(list);
  }
  return best;
}

std::string with_names(std::string_view prompt, const ClassList& list, const Strings& names) {
  const char before = list.begin > 0 ? prompt[list.begin - 1] : ' ';
  const std::string quote(kQuotes.find(before) == kQuotes.npos ? 0 : 1, before);
  const std::string comma = quote + ", " + quote;
  std::string text(prompt.substr(0, list.begin));
  for (size_t i = 0; i < names.size(); ++i) {
    const bool is_last = i + 1 == names.size();
    if (i > 0) text += list.gaps.empty() ? comma : is_last ? list.gaps.back() : list.gaps.front();
    text += names[i];
  }
  return text.append(prompt.substr(list.end));
}

}  // namespace rematch
