#include "base/text.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <ranges>

#include "base/compatible_form.h"
#include "base/error.h"

namespace rematch {
namespace {

bool is_python_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

std::string map_text(std::string_view utf8, int options) {
  utf8proc_uint8_t* result = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(utf8.data()),
                                             static_cast<utf8proc_ssize_t>(utf8.size()), &result,
                                             static_cast<utf8proc_option_t>(options));
  REMATCH_CHECK(size >= 0, "normalization needs valid UTF-8");
  std::string text(reinterpret_cast<const char*>(result), static_cast<size_t>(size));
  std::free(result);
  return text;
}

/// Edit distance: insertions, deletions, substitutions and swaps of neighbours that turn `a` into
/// `b`. Cost: |a|·|b|.
int edit_distance(std::string_view a, std::string_view b) {
  const size_t n = b.size();
  std::vector<int> before_last(n + 1), last(n + 1), current(n + 1);
  for (size_t j = 0; j <= n; ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = static_cast<int>(i);
    for (size_t j = 1; j <= n; ++j) {
      current[j] =
          std::min({last[j] + 1, current[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        current[j] = std::min(current[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, current);
  }
  return last[n];
}

}  // namespace

bool is_valid_utf8(std::string_view bytes) {
  size_t i = 0;
  while (i < bytes.size()) {
    if (static_cast<unsigned char>(bytes[i]) < 0x80) {
      ++i;
      continue;
    }
    utf8proc_int32_t code_point = 0;
    const utf8proc_ssize_t used =
        utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(bytes.data()) + i,
                         static_cast<utf8proc_ssize_t>(bytes.size() - i), &code_point);
    if (used <= 0) return false;
    i += static_cast<size_t>(used);
  }
  return true;
}

char32_t next_code_point(std::string_view utf8, size_t& offset) {
  utf8proc_int32_t code_point = 0;
  const utf8proc_ssize_t used =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(utf8.data()) + offset,
                       static_cast<utf8proc_ssize_t>(utf8.size() - offset), &code_point);
  REMATCH_CHECK(used > 0, "next_code_point needs valid UTF-8");
  offset += static_cast<size_t>(used);
  return static_cast<char32_t>(code_point);
}

std::string python_strip(std::string_view utf8) {
  size_t begin = utf8.size(), end = 0, offset = 0;
  while (offset < utf8.size()) {
    const size_t start = offset;
    if (!is_python_space(next_code_point(utf8, offset))) {
      begin = std::min(begin, start);
      end = offset;
    }
  }
  return begin >= end ? std::string() : std::string(utf8.substr(begin, end - begin));
}

std::string normalize_nfc(std::string_view utf8) {
  if (std::ranges::all_of(utf8, [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
    return std::string(utf8);
  return map_text(utf8, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
}

std::string compatible_form(std::string_view utf8) {
  return map_text(utf8, UTF8PROC_STABLE | UTF8PROC_COMPAT | UTF8PROC_COMPOSE | UTF8PROC_IGNORE);
}

std::string swap_unicode_form(std::string_view utf8) {
  const std::string composed = normalize_nfc(utf8);
  return composed != utf8 ? composed : map_text(utf8, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
}

std::string normalize_label(std::string_view utf8) {
  const std::string folded = map_text(
      map_text(utf8, UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT), UTF8PROC_CASEFOLD);
  std::string label;
  bool space_before = false;
  for (size_t offset = 0; offset < folded.size();) {
    const char32_t c = next_code_point(folded, offset);
    const bool is_space = is_python_space(c);
    if (!is_space && space_before && !label.empty()) label += ' ';
    if (!is_space) append_utf8(label, c);
    space_before = is_space;
  }
  return label;
}

void append_utf8(std::string& out, char32_t code_point) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t size =
      utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
}

Strings near_names(std::string_view name, const Strings& candidates, size_t limit) {
  constexpr size_t kLongestName = 80;  // comparing two names costs the product of their lengths
  if (name.size() > kLongestName) return {};
  const int reach = std::max<int>(2, static_cast<int>(name.size()) / 3);
  std::vector<std::pair<int, std::string>> scored;
  for (const std::string& candidate : candidates) {
    const int distance = edit_distance(name, candidate);
    if (distance <= reach) scored.emplace_back(distance, candidate);
  }
  std::ranges::stable_sort(scored, {}, [](const auto& one) { return one.first; });
  Strings names;
  for (auto& one : scored | std::views::take(limit)) names.push_back(std::move(one.second));
  return names;
}

std::string lower_case(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::string join(const Strings& parts, std::string_view separator) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += separator;
    text += parts[i];
  }
  return text;
}

std::string shorten_bytes(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return std::string(text.substr(0, most)) + "…";
}

std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

Strings split(std::string_view text, char separator) {
  Strings parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

}  // namespace rematch
