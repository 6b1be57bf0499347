#include "augment/side_words.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr size_t kMaxShown = 3;

/// Bytes above ASCII are parts of letters.
bool is_word_byte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || static_cast<unsigned char>(c) >= 0x80;
}

std::string lower_ascii(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

}  // namespace

bool says_a_side(std::string_view text) {
  const std::string lower = lower_ascii(text);
  for (const std::string_view word : {"left", "right"}) {
    for (size_t at = lower.find(word); at != std::string::npos; at = lower.find(word, at + 1)) {
      const size_t end = at + word.size();
      const bool begins = at == 0 || !is_word_byte(lower[at - 1]);
      if (begins && (end == lower.size() || !is_word_byte(lower[end]))) return true;
    }
  }
  return false;
}

void check_side_words(const std::vector<Sample>& samples,
                      const std::vector<std::pair<std::string, std::string>>& prompts) {
  std::vector<std::string> places;
  for (const auto& [key, text] : prompts) {
    if (says_a_side(text)) places.push_back(key);
  }
  for (const Sample& sample : samples) {
    if (says_a_side(sample.prompt)) places.push_back(fmt::format("{}: `prompt`", sample.where));
    for (const SceneObject& object : sample.objects) {
      if (says_a_side(object.desc))
        places.push_back(fmt::format("{}: \"{}\"", sample.where, shown_label(object.desc)));
    }
  }
  if (places.empty()) return;
  const size_t num_places = places.size();
  places.resize(std::min(num_places, kMaxShown));
  throw UserError(
      ErrorKind::kConfig,
      {.error = "mirrored pictures would make texts with \"left\" or \"right\" wrong",
       .where = "data.augment.hflip",
       .what = fmt::format("{}: {}{}", counted(static_cast<int64_t>(num_places), "text"),
                           join(places, ", "), num_places > kMaxShown ? ", …" : ""),
       .fix = "remove `hflip`, or set `data.augment.hflip_words: true` if the words do not mean "
              "sides of the picture"});
}

}  // namespace rematch
