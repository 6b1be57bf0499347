#include "learn/augment/side_words.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/compatible_form.h"
#include "base/error.h"
#include "base/first_few.h"
#include "base/full_match.h"
#include "base/terminal_text.h"

namespace rematch {
namespace {

// Pieces of one word: "topleft", "rearright". Only those of an axis name a side of it.
constexpr const char* kLeftRight = "left|right";
constexpr const char* kTopBottom = "top|bottom|upper|lower";
constexpr const char* kOtherPlaces =
    "mid|middle|center|centre|front|back|rear|far|near|inner|outer";
// Words that combine with an ending only: "upright" and "downright" name no side.
constexpr const char* kTopBottomAlone = "up|down|above|below|beneath|underneath";
constexpr const char* kEnding = "(?:most|wards?|hand(?:ed|er)?|side[sd]?)?";
/// The ends of a word. Letters without case, such as Chinese ones, are never part of an
/// English word. The capital before a small letter begins a word ("HTTPLeft") or ends one
/// ("LEFTarm"): which one, cannot be known.
constexpr const char* kWordEnd =
    R"((?:(?<![\p{Lu}\p{Lt}\p{Ll}\p{Lm}\p{M}])|(?![\p{Lu}\p{Lt}\p{Ll}\p{Lm}\p{M}]))"
    R"(|(?<=\p{Ll})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})|(?<=\p{Lu}\p{Lu})(?=\p{Ll})))";

/// The expression for a text with a word that names a side.
std::string side_pattern(SideAxis axis) {
  const bool is_top_bottom = axis == SideAxis::kTopBottom;
  const std::string pieces = fmt::format("(?:{}|{}|{})*", kLeftRight, kTopBottom, kOtherPlaces);
  return fmt::format("(?s).*?{0}(?i:{1}(?:{2}){1}{3}|(?:{4}){3}){0}.*", kWordEnd, pieces,
                     is_top_bottom ? kTopBottom : kLeftRight, kEnding,
                     is_top_bottom ? kTopBottomAlone : kLeftRight);
}

/// A change of pictures and what it does to words.
struct Change {
  const char* key;
  bool is_on;
  std::vector<SideAxis> axes;
  const char* error;
};

}  // namespace

bool names_a_side(std::string_view text, SideAxis axis) {
  static const FullMatch left_right(side_pattern(SideAxis::kLeftRight), "left and right"),
      top_bottom(side_pattern(SideAxis::kTopBottom), "top and bottom");
  return (axis == SideAxis::kLeftRight ? left_right : top_bottom).matches(compatible_form(text));
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
      return std::ranges::any_of(change.axes,
                                 [&](SideAxis axis) { return names_a_side(text, axis); });
    };
    Strings places;
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
    problems.push_back(
        {.error = change.error,
         .where = fmt::format("data.augment.{}", change.key),
         .what = fmt::format("{}: {}", counted(std::ssize(places), "text"), first_few(places)),
         .fix = fmt::format("remove `{0}`, or set `data.augment.{0}_words: true` if "
                            "the words do not mean sides of the picture",
                            change.key)});
  }
  if (!problems.empty()) throw UserError(ErrorKind::kConfig, std::move(problems));
}

}  // namespace rematch
