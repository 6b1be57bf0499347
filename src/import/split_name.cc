#include <fmt/core.h>

#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "import/foreign.h"

namespace rematch {
namespace {

const std::map<std::string, std::string> kSplitWords = {
    {"train", "train"},    {"training", "train"}, {"val", "val"},     {"valid", "val"},
    {"validation", "val"}, {"test", "test"},      {"testing", "test"}};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

std::string split_in_words(const std::string& name) {
  std::set<std::string> splits;
  std::string word;
  for (const char c : name + " ") {
    if (is_letter(c)) {
      word += static_cast<char>(c | 0x20);  // lower case
      continue;
    }
    if (const auto known = kSplitWords.find(word); known != kSplitWords.end())
      splits.insert(known->second);
    word.clear();
  }
  return splits.size() == 1 ? *splits.begin() : "";
}

std::string split_of_name(const std::string& path) {
  const std::filesystem::path file(path);
  std::string stem = file.stem().string(), in_stem = split_in_words(stem);
  if (!in_stem.empty()) return in_stem;
  std::string in_folder = split_in_words(file.parent_path().filename().string());
  return in_folder.empty() ? stem : in_folder;
}

void check_one_file_per_split(const std::vector<std::string>& paths, const ImportOptions& options) {
  if (!options.split.empty()) return;
  std::map<std::string, std::string> sources;
  for (const std::string& path : paths) {
    const auto [first, is_new] = sources.try_emplace(split_of_name(path), path);
    if (is_new) continue;
    throw UserError(
        ErrorKind::kConfig,
        {.error = fmt::format("two files are the same split, \"{}\"", first->first),
         .where = path,
         .what = fmt::format("by its name it belongs to the split of {}", first->second),
         .fix = fmt::format("convert each file alone and name its split: --split train, --split "
                            "val; to put both into one split on purpose: --split {}",
                            first->first)});
  }
}

}  // namespace rematch
