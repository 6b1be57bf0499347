#include "model/text/word_character.h"

#include <utf8proc.h>

#include <string_view>

#include "model/text/unicode_additions.h"

namespace rematch {
namespace {

// Finds the category, "Lu", "Mn", …; if the two Unicode versions differ, that of the newer one.
std::string_view find_category(uint32_t code_point) {
  if (const CategoryRun* run = find_run(kUnicodeAdditions, code_point)) return run->category;
  return utf8proc_category_string(static_cast<utf8proc_int32_t>(code_point));
}

// Symbols with the property Alphabetic: Ⓐ to ⓩ and the squared and circled capitals.
bool is_enclosed_letter(char32_t c) {
  return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
         (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

}  // namespace

bool is_word_character(char32_t code_point) {
  const std::string_view category = find_category(code_point);
  if (category[0] == 'L' || category[0] == 'M' || category == "Nd" || category == "Nl" ||
      category == "Pc")
    return true;
  return code_point == 0x200C || code_point == 0x200D || is_enclosed_letter(code_point);
}

}  // namespace rematch
