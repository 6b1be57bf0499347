#include "text/word_character.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "text/unicode_additions.h"

namespace rematch {
namespace {

// "Lu", "Mn", …; of the younger Unicode version where the two differ.
std::string_view category_of(uint32_t code_point) {
  const auto after =
      std::upper_bound(std::begin(kUnicodeAdditions), std::end(kUnicodeAdditions), code_point,
                       [](uint32_t c, const CategoryRun& run) { return c < run.first; });
  if (after != std::begin(kUnicodeAdditions) && code_point <= std::prev(after)->last)
    return std::prev(after)->category;
  return utf8proc_category_string(static_cast<utf8proc_int32_t>(code_point));
}

// Letters by property, though symbols by category: Ⓐ to ⓩ and the squared and circled capitals.
bool is_enclosed_letter(char32_t c) {
  return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
         (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

}  // namespace

bool is_word_character(char32_t code_point) {
  const std::string_view category = category_of(code_point);
  if (category[0] == 'L' || category[0] == 'M' || category == "Nd" || category == "Nl" ||
      category == "Pc")
    return true;
  return code_point == 0x200C || code_point == 0x200D || is_enclosed_letter(code_point);
}

}  // namespace rematch
