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

/// Compatible letters become the usual ones (full width, ligatures), invisible characters vanish.
std::string plain_letters(std::string_view text) {
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPAT |
                                                  UTF8PROC_COMPOSE | UTF8PROC_IGNORE));
  std::string plain =
      size < 0 ? std::string(text)
               : std::string(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
  std::free(mapped);
  return plain;
}

/// Letters without case, such as Chinese ones, are never part of an English word: kNone.
enum class Letter { kNone, kUpper, kLower, kOther };

Letter letter_of(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT: return Letter::kUpper;
    case UTF8PROC_CATEGORY_LL: return Letter::kLower;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME: return Letter::kOther;
    default: return Letter::kNone;
  }
}

/// Collects the words of a text. The capital before a small letter begins a word ("HTTPLeft") or
/// ends one ("LEFTarm"): which one, cannot be known.
class Words {
 public:
  explicit Words(bool capital_begins) : capital_begins_(capital_begins) {}

  void add(char32_t c) {
    const Letter letter = letter_of(c);
    const bool was_upper = last_ == Letter::kUpper;
    if (letter == Letter::kNone || (letter == Letter::kUpper && last_ == Letter::kLower)) {
      end();
    } else if (letter == Letter::kLower && was_upper && num_upper_ > 1) {
      const char capital = words_.back().back();
      if (capital_begins_) words_.back().pop_back();
      end();
      if (capital_begins_) words_.back() += capital;
    }
    last_ = letter;
    num_upper_ = letter == Letter::kUpper ? num_upper_ + 1 : 0;
    // Letters beyond ASCII are in none of the words.
    if (letter != Letter::kNone) words_.back() += c < 0x80 ? static_cast<char>(c | 0x20) : '?';
  }
  const std::vector<std::string>& all() const { return words_; }

 private:
  void end() {
    words_.emplace_back();
    num_upper_ = 0;
  }

  bool capital_begins_;
  Letter last_ = Letter::kNone;
  int num_upper_ = 0;
  std::vector<std::string> words_{""};
};

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
  const std::string plain = plain_letters(text);
  for (const bool capital_begins : {true, false}) {
    Words words(capital_begins);
    for (size_t offset = 0; offset < plain.size();) words.add(next_code_point(plain, offset));
    for (const std::string& word : words.all()) {
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
