#include "learn/augment/side_words.h"

#include <fmt/core.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "base/error.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr size_t kMaxShown = 3;

// Pieces of one word: "topleft", "rearright". Only those of an axis name a side of it.
constexpr std::string_view kLeftRight[] = {"left", "right"};
constexpr std::string_view kTopBottom[] = {"top", "bottom", "upper", "lower"};
constexpr std::string_view kOtherPlaces[] = {"mid",  "middle", "center", "centre", "front", "back",
                                             "rear", "far",    "near",   "inner",  "outer"};
// Words that combine with an ending only: "upright" and "downright" name no side.
constexpr std::string_view kTopBottomAlone[] = {"up",    "down",    "above",
                                                "below", "beneath", "underneath"};
constexpr std::string_view kEndings[] = {"",       "most",   "ward", "wards", "hand",
                                         "handed", "hander", "side", "sides", "sided"};

template <size_t N>
bool is_one_of(std::string_view word, const std::string_view (&words)[N]) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

/// True if a word consists of pieces and one ending.
/// @param names  a piece before it names a side
bool has_pieces(std::string_view word, SideAxis axis, bool names) {
  if (names && is_one_of(word, kEndings)) return true;
  const auto any = [&](const auto& pieces, bool names_side) {
    return std::any_of(std::begin(pieces), std::end(pieces), [&](std::string_view piece) {
      return word.starts_with(piece) &&
             has_pieces(word.substr(piece.size()), axis, names || names_side);
    });
  };
  return any(kLeftRight, axis == SideAxis::kLeftRight) ||
         any(kTopBottom, axis == SideAxis::kTopBottom) || any(kOtherPlaces, false);
}

/// @param word  lower case
bool names_side(std::string_view word, SideAxis axis) {
  if (axis == SideAxis::kTopBottom) {
    for (const std::string_view begin : kTopBottomAlone) {
      if (word.starts_with(begin) && is_one_of(word.substr(begin.size()), kEndings)) return true;
    }
  }
  return has_pieces(word, axis, false);
}

/// A text with one character for each letter: itself in ASCII, '^' and '_' for other upper and
/// lower case ones, '?' for marks and modifiers. Everything else becomes ' ', also letters without
/// case, such as Chinese ones, which are never part of an English word. Compatible letters become
/// the usual ones first (full width, ligatures), invisible characters vanish.
std::string letters_of(std::string_view text) {
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPAT |
                                                  UTF8PROC_COMPOSE | UTF8PROC_IGNORE));
  const std::string plain =
      size < 0 ? std::string(text)
               : std::string(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
  std::free(mapped);
  std::string letters;
  for (size_t offset = 0; offset < plain.size();) {
    const char32_t c = next_code_point(plain, offset);
    char kind = ' ';
    switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
      case UTF8PROC_CATEGORY_LU:
      case UTF8PROC_CATEGORY_LT: kind = '^'; break;
      case UTF8PROC_CATEGORY_LL: kind = '_'; break;
      case UTF8PROC_CATEGORY_LM:
      case UTF8PROC_CATEGORY_MN:
      case UTF8PROC_CATEGORY_MC:
      case UTF8PROC_CATEGORY_ME: kind = '?'; break;
      default: break;
    }
    letters += kind != ' ' && c < 0x80 ? static_cast<char>(c) : kind;
  }
  return letters;
}

bool is_upper(char c) { return c == '^' || (c >= 'A' && c <= 'Z'); }
bool is_lower(char c) { return c == '_' || (c >= 'a' && c <= 'z'); }

/// The words of letters_of(), in lower case. The capital before a small letter begins a word
/// ("HTTPLeft") or ends one ("LEFTarm"): which one, cannot be known.
std::vector<std::string> words_of(const std::string& letters, bool capital_begins) {
  std::vector<std::string> words{""};
  int num_upper = 0;  // at the end of the last word
  char last = ' ';
  for (const char c : letters) {
    if (c == ' ' || (is_upper(c) && is_lower(last))) {
      words.emplace_back();
      num_upper = 0;
    } else if (is_lower(c) && num_upper > 1) {
      const std::string capital(capital_begins ? 1 : 0, words.back().back());
      if (capital_begins) words.back().pop_back();
      words.push_back(capital);
    }
    num_upper = is_upper(c) ? num_upper + 1 : 0;
    if (c != ' ') words.back() += static_cast<char>(c | 0x20);
    last = c;
  }
  return words;
}

/// A change of pictures and what it does to words.
struct Change {
  const char* key;
  bool is_on;
  std::vector<SideAxis> axes;
  const char* error;
};

std::string describe(const std::vector<std::string>& places) {
  const std::vector<std::string> shown(
      places.begin(),
      places.begin() + static_cast<std::ptrdiff_t>(std::min(places.size(), kMaxShown)));
  return fmt::format("{}: {}{}", counted(std::ssize(places), "text"), join(shown, ", "),
                     places.size() > kMaxShown ? ", …" : "");
}

}  // namespace

bool names_a_side(std::string_view text, SideAxis axis) {
  const std::string letters = letters_of(text);
  for (const bool capital_begins : {true, false}) {
    for (const std::string& word : words_of(letters, capital_begins)) {
      if (names_side(word, axis)) return true;
    }
  }
  return false;
}

void check_side_words(const std::vector<Sample>& samples,
                      const std::vector<std::pair<std::string, std::string>>& prompts,
                      const AugmentSettings& settings) {
  const Change changes[] = {
      {"hflip",
       settings.hflip > 0 && !settings.hflip_words,
       {SideAxis::kLeftRight},
       "mirrored pictures would make texts with \"left\" or \"right\" wrong"},
      {"vflip",
       settings.vflip > 0 && !settings.vflip_words,
       {SideAxis::kTopBottom},
       "pictures upside down would make texts such as \"top\" or \"lower\" wrong"},
      {"rot90",
       settings.rot90 > 0 && !settings.rot90_words,
       {SideAxis::kLeftRight, SideAxis::kTopBottom},
       "turned pictures would make texts such as \"left\" or \"top\" wrong"}};
  std::vector<Problem> problems;
  for (const Change& change : changes) {
    if (!change.is_on) continue;
    const auto is_sided = [&](std::string_view text) {
      return std::any_of(change.axes.begin(), change.axes.end(),
                         [&](SideAxis axis) { return names_a_side(text, axis); });
    };
    std::vector<std::string> places;
    for (const auto& [key, text] : prompts) {
      if (is_sided(text)) places.push_back(key);
    }
    for (const Sample& sample : samples) {
      if (is_sided(sample.prompt)) places.push_back(fmt::format("{}: `prompt`", sample.where));
      for (const SceneObject& object : sample.objects) {
        if (is_sided(object.desc))
          places.push_back(fmt::format("{}: \"{}\"", sample.where, shown_label(object.desc)));
      }
    }
    if (places.empty()) continue;
    problems.push_back({.error = change.error,
                        .where = fmt::format("data.augment.{}", change.key),
                        .what = describe(places),
                        .fix = fmt::format("remove `{0}`, or set `data.augment.{0}_words: true` if "
                                           "the words do not mean sides of the picture",
                                           change.key)});
  }
  if (!problems.empty()) throw UserError(ErrorKind::kConfig, std::move(problems));
}

}  // namespace rematch
