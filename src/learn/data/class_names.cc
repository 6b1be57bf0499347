#include "learn/data/class_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <utility>

#include "base/first_few.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr int64_t kFew = 3, kManyTimes = 20;

/// Normalized label → its spellings and their counts.
using Names = std::map<std::string, std::map<std::string, int64_t>>;

std::string spelling_warning(const Names& names) {
  Strings examples;
  for (const auto& [label, spellings] : names) {
    if (spellings.size() < 2) continue;
    Strings group;
    for (const auto& [name, count] : spellings)
      group.push_back(fmt::format("{} ({})", shown_label(name), count));
    examples.push_back(join(group, " / "));
  }
  if (examples.empty()) return "";
  return fmt::format("{} in several spellings that differ only in case or spaces: {}; choose one",
                     counted(std::ssize(examples), "class", "classes"), first_few(examples));
}

/// The words of a name, between other characters than letters and digits of any script.
std::set<std::string> words_of(const std::string& name) {
  std::set<std::string> words;
  std::string word;
  for (const char c : name + ' ') {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || byte >= 0x80) {
      word += c;
    } else if (!word.empty()) {
      words.insert(std::exchange(word, ""));
    }
  }
  return words;
}

std::string rare_part_warning(const Names& names) {
  std::map<std::string, int64_t> counts;
  for (const auto& [label, spellings] : names) {
    for (const auto& [name, count] : spellings) counts[label] += count;
  }
  for (const auto& [rare, few] : counts) {
    const std::set<std::string> part = words_of(rare);
    Strings whole;
    for (const auto& [label, many] : counts) {
      const std::set<std::string> words = words_of(label);
      const bool holds_it = words.size() > part.size() &&
                            std::includes(words.begin(), words.end(), part.begin(), part.end());
      if (few <= kFew && !part.empty() && holds_it && many >= kManyTimes * few)
        whole.push_back(fmt::format("{} ({})", shown_label(label), many));
    }
    if (!whole.empty())
      return fmt::format("{} occurs {} beside {}: a slip?", shown_label(rare), counted(few, "time"),
                         first_few(whole));
  }
  return "";
}

std::string number_warning(const Names& names) {
  const auto is_number = [](const auto& each) {
    return !each.first.empty() && each.first.find_first_not_of("0123456789") == std::string::npos;
  };
  if (names.empty() || !std::ranges::all_of(names, is_number)) return "";
  return fmt::format(
      "the names of the classes are numbers ({}), and a language model knows words: give names "
      "where the records are made",
      shown_label(names.begin()->first));
}

}  // namespace

Strings class_name_warnings(const Dataset& train, const Dataset* val) {
  std::map<std::string, int64_t> counts;
  for (const Dataset* data : {&train, val}) {
    for (size_t i = 0; data != nullptr && i < data->samples().size(); ++i) {
      for (const SceneObject& object : data->samples()[i].objects) ++counts[object.desc];
    }
  }
  return class_name_warnings(counts);
}

Strings class_name_warnings(const std::map<std::string, int64_t>& counts) {
  Names names;
  for (const auto& [name, count] : counts) names[normalize_label(name)][name] = count;
  Strings warnings{spelling_warning(names), rare_part_warning(names), number_warning(names)};
  std::erase(warnings, "");
  return warnings;
}

}  // namespace rematch
