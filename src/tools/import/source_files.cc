#include "tools/import/source_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "tools/import/directory_format.h"
#include "tools/import/image_files.h"
#include "tools/import/json_value.h"
#include "tools/import/reasons.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::string> kSplitWords = {
    {"train", "train"},    {"training", "train"}, {"val", "val"},     {"valid", "val"},
    {"validation", "val"}, {"test", "test"},      {"testing", "test"}};
constexpr const char* kSplitFolders[] = {"train", "val", "valid", "validation", "test"};

std::vector<fs::path> list_files(const fs::path& directory, const std::string& ending) {
  std::vector<fs::path> files;
  if (!fs::is_directory(directory)) return files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    std::error_code unreachable;
    if (lower_case(entry.path().extension().string()) == ending && !is_macos_copy(entry.path()) &&
        entry.is_regular_file(unreachable))
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// COCO's own directory has captions and key points of the same images next to the boxes.
void keep_instances(std::vector<fs::path>& files) {
  const auto is_other = [](const fs::path& file) {
    return !file.filename().string().starts_with("instances_");
  };
  if (!std::all_of(files.begin(), files.end(), is_other)) std::erase_if(files, is_other);
}

}  // namespace

std::string find_split_word(const std::string& name) {
  std::set<std::string> splits;
  std::string word;
  for (const char c : lower_case(name) + " ") {
    if (c >= 'a' && c <= 'z') {
      word += c;
      continue;
    }
    if (const auto known = kSplitWords.find(word); known != kSplitWords.end())
      splits.insert(known->second);
    word.clear();
  }
  return splits.size() == 1 ? *splits.begin() : "";
}

std::string find_split_folder(const fs::path& file, const fs::path& root) {
  std::string split;
  for (const fs::path& part : file.parent_path().lexically_relative(root)) {
    if (std::string word = find_split_word(part.string()); !word.empty()) split = std::move(word);
  }
  return split;
}

std::string guess_split(const std::string& path) {
  const fs::path file(path);
  for (const fs::path& part : {file.stem(), file.parent_path().filename()}) {
    if (std::string word = find_split_word(part.string()); !word.empty()) return word;
  }
  return file.stem().string();
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

SplitFiles list_annotations(const fs::path& directory, const std::string& ending,
                            const std::string& wanted) {
  SplitFiles splits;
  std::vector<fs::path> files = list_files(directory, ending);
  for (const char* name : kSplitFolders) {
    const fs::path folder = find_folder(directory, {&name, 1});
    std::vector<fs::path> inside = list_files(folder, ending);
    if (inside.empty()) continue;
    if (!files.empty())
      throw UserError(ErrorKind::kData,
                      {.error = "annotations are both in the directory and in its split folders",
                       .where = directory.string(),
                       .what = fmt::format("{} and files in {}/", files.front().filename().string(),
                                           folder.filename().string()),
                       .fix = "give one folder at a time, with --split NAME"});
    if (!splits.try_emplace(find_split_word(name), std::move(inside)).second)
      throw UserError(ErrorKind::kData, {.error = "two folders are the same split",
                                         .where = folder.string(),
                                         .what = "val and valid are both validation data",
                                         .fix = "give one folder at a time, with --split NAME"});
  }
  if (files.empty()) return splits;
  const std::string split = find_split_word(directory.filename().string());
  splits[!wanted.empty() ? wanted : split.empty() ? "train" : split] = std::move(files);
  return splits;
}

SplitFiles find_annotations(const std::string& directory, const DirectoryFormat& format,
                            const std::string& wanted) {
  SplitFiles splits = list_annotations(directory, format.ending, wanted);
  if (splits.empty())
    splits = list_annotations(find_folder(directory, kAnnotationFolders), format.ending, wanted);
  if (!splits.empty()) return splits;
  throw UserError(ErrorKind::kData, {.error = format.error,
                                     .where = directory,
                                     .what = format.what,
                                     .fix = import_fix(directory, format.command, format.fix)});
}

std::vector<std::string> find_split_files(const std::vector<std::string>& sources,
                                          const DirectoryFormat& format,
                                          const ImportOptions& options) {
  std::vector<std::string> paths;
  for (const std::string& source : sources) {
    if (!fs::is_directory(source)) {
      paths.push_back(source);
      continue;
    }
    for (auto& [split, files] : find_annotations(source, format, options.split)) {
      keep_instances(files);
      paths.insert(paths.end(), files.begin(), files.end());
    }
  }
  check_one_file_per_split(paths, options);
  return paths;
}

void lose_deeper_files(const SplitFiles& read, const char* mark, Ledger& ledger) {
  std::set<fs::path> known, folders;
  std::string ending;
  for (const auto& [split, files] : read) {
    for (const fs::path& file : files) {
      known.insert(file);
      folders.insert(file.parent_path().empty() ? "." : file.parent_path());
      ending = lower_case(file.extension().string());
    }
  }
  std::set<fs::path> deeper;
  for (const fs::path& folder : folders) {
    std::error_code error;
    for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      const fs::path& file = entry->path();
      if (entry.depth() > 0 && lower_case(file.extension().string()) == ending &&
          !known.contains(file) && !is_macos_copy(file))
        deeper.insert(file);
    }
  }
  for (const fs::path& file : deeper) {
    if (read_file(file.string()).find(mark) != std::string::npos)
      ledger.lose_record(reason::kDeeper, file.string());
  }
}

ForeignImage image_of_file(const fs::path& annotation) {
  return {.name = annotation.stem().string(),
          .directory = annotation.parent_path().string(),
          .stem = annotation.stem().string(),
          .where = annotation.string()};
}

ForeignImage image_of_record(const Json& record, const std::string& name, const std::string& file,
                             const std::string& where) {
  return {.name = name,
          .directory = fs::path(file).parent_path().string(),
          .where = where,
          .width_px = read_side_px(find_member(record, "width")),
          .height_px = read_side_px(find_member(record, "height"))};
}

void require_images(const ForeignSet& set, const char* error, const char* fix) {
  if (!set.is_empty()) return;
  const std::vector<std::string> places = set.ledger.places();
  throw UserError(
      ErrorKind::kData,
      {.error = error,
       .where = places.empty() ? set.sources.front() : places.front(),
       .what = places.empty() ? "the file has no records" : set.ledger.summary(0),
       .fix = Ledger::fix_of(set.ledger.records(), fix) + "; nothing has been written"});
}

}  // namespace rematch
