#include <fmt/core.h>

#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "tools/import/foreign.h"

namespace rematch {
namespace {

const std::map<std::string, std::string> kSplitWords = {
    {"train", "train"},    {"training", "train"}, {"val", "val"},     {"valid", "val"},
    {"validation", "val"}, {"test", "test"},      {"testing", "test"}};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

std::string find_split_word(const std::string& name) {
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

std::string guess_split(const std::string& path) {
  const std::filesystem::path file(path);
  std::string stem = file.stem().string(), in_stem = find_split_word(stem);
  if (!in_stem.empty()) return in_stem;
  std::string in_folder = find_split_word(file.parent_path().filename().string());
  return in_folder.empty() ? stem : in_folder;
}

std::string ImportOptions::directory_of(const std::string& file) {
  return std::filesystem::path(file).parent_path().string();
}

std::string ImportOptions::split_name(const std::string& file) const {
  return split.empty() ? guess_split(file) : split;
}

void check_one_file_per_split(const std::vector<std::string>& paths, const ImportOptions& options) {
  if (!options.split.empty()) return;
  std::map<std::string, std::string> sources;
  for (const std::string& path : paths) {
    const auto [first, is_new] = sources.try_emplace(guess_split(path), path);
    if (is_new) continue;
    throw UserError(
        ErrorKind::kConfig,
        {.error = fmt::format("two files are the same split, \"{}\"", first->first),
         .where = path,
         .what = fmt::format("its name means the same split as {}", first->second),
         .fix = fmt::format("convert each file separately and name its split: --split train, "
                            "--split val; to put both into one split: --split {}",
                            first->first)});
  }
}

}  // namespace rematch
