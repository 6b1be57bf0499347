#include "tools/import/source_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/missing_path.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/utf16.h"
#include "learn/data/foreign_file.h"
#include "learn/data/image_files.h"
#include "tools/import/json_value.h"
#include "tools/import/reasons.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::string> kSplitWords = {
    {"train", "train"},    {"training", "train"}, {"val", "val"},     {"valid", "val"},
    {"validation", "val"}, {"test", "test"},      {"testing", "test"}};

}  // namespace

void refuse_source(const char* command, const std::string& where, const std::string& what,
                   const std::string& fix) {
  throw UserError(
      ErrorKind::kData,
      {.error = fmt::format("`rematch data {}` cannot read this", command),
       .where = where,
       .what = what,
       .fix =
           !fix.empty()
               ? fix
               : kImportAdvice +
                     std::string("; export other forms as COCO, as Label Studio and CVAT do, or "
                                 "convert them: `datum convert -i DIR -if FORM -f coco -o coco -- "
                                 "--save-media`")});
}

std::string_view text_of(std::string_view bytes, const std::string& path) {
  refuse_utf16(bytes, path);
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  return bytes;
}

std::string read_utf8(const std::string& path) {
  const std::string bytes = read_file(path);
  const std::string_view text = text_of(bytes, path);
  if (is_valid_utf8(text)) return std::string(text);
  throw UserError(
      ErrorKind::kData,
      {.error = "the file is not UTF-8",
       .where = path,
       .what = "a byte of it belongs to no character",
       .fix = fmt::format("convert it from the encoding that it has (GBK, ISO-8859-1, …): iconv -f "
                          "GBK -t UTF-8 {} > NEW",
                          shell_word(path))});
}

std::vector<std::string> read_lines(const std::string& path) {
  return split(text_of(read_file(path), path), '\n');
}

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

void ForeignImage::state_size(std::optional<double> width, std::optional<double> height) {
  const auto state = [this](int& side, std::optional<double> stated) {
    if (!stated || *stated < 1 || *stated > std::numeric_limits<int>::max()) return;
    const int px = static_cast<int>(std::lround(*stated));
    if (side != 0 && side != px)
      leave_out(reason::kImageSize, fmt::format("{}: a side of {} and of {}", where, side, px));
    side = px;
  };
  state(width_px, width);
  state(height_px, height);
}

fs::path find_folder(const fs::path& directory, std::span<const char* const> names) {
  std::map<std::string, fs::path> folders;
  for (const fs::directory_entry& entry : list_entries(directory)) {
    std::error_code unreachable;
    if (entry.is_directory(unreachable))
      folders.emplace(lower_case(entry.path().filename().string()), entry.path());
  }
  for (const char* name : names) {
    if (const auto found = folders.find(name); found != folders.end()) return found->second;
  }
  return {};
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
         .fix = "convert each file with --split NAME, or both with --split " + first->first});
  }
}

SplitFiles find_annotations(const std::string& directory, const char* command, const char* ending,
                            const std::string& wanted) {
  if (!fs::exists(directory))
    throw missing_path("directory", directory, "give the directory of the annotations");
  if (!fs::is_directory(directory)) {
    const std::string parent = fs::path(directory).parent_path().string();
    refuse_source(command, directory, "it is a file, not a directory",
                  "give its directory: " + shell_word(parent.empty() ? "." : parent));
  }
  std::string split = wanted.empty() ? find_split_word(fs::path(directory).filename()) : wanted;
  if (split.empty()) split = "train";
  SplitFiles splits;
  for (fs::path& file : list_files(directory, [&](const fs::path& path) {
         return lower_case(path.extension().string()) == ending;
       })) {
    const std::string named = find_split_folder(file, directory);
    splits[named.empty() ? split : named].push_back(std::move(file));
  }
  if (splits.empty()) refuse_source(command, directory, fmt::format("it has no {} files", ending));
  return splits;
}

std::vector<std::string> find_split_files(const std::vector<std::string>& sources,
                                          const char* command, const char* ending,
                                          const std::function<bool(const fs::path&)>& fits,
                                          const ImportOptions& options) {
  std::vector<std::string> paths;
  for (const std::string& source : sources) {
    if (!fs::is_directory(source)) {
      paths.push_back(source);
      continue;
    }
    std::vector<fs::path> found;
    for (auto [split, files] : find_annotations(source, command, ending, options.split)) {
      std::erase_if(files, [&](const fs::path& file) { return !fits(file); });
      found.insert(found.end(), files.begin(), files.end());
    }
    // COCO's own directory has captions and key points of the same images next to the boxes
    const auto is_other = [](const fs::path& file) {
      return !file.filename().string().starts_with("instances_");
    };
    if (!std::all_of(found.begin(), found.end(), is_other)) std::erase_if(found, is_other);
    if (found.empty())
      refuse_source(command, source, fmt::format("none of its {} files is of this form", ending));
    for (const fs::path& file : found) paths.push_back(file.string());
  }
  check_one_file_per_split(paths, options);
  return paths;
}

ForeignImage image_of_file(const fs::path& annotation) {
  return {.name = annotation.stem().string(),
          .directory = annotation.parent_path().string(),
          .stem = annotation.stem().string(),
          .where = annotation.string()};
}

ForeignImage image_in(const std::string& file, const std::string& name, const std::string& where) {
  return {.name = name, .directory = fs::path(file).parent_path().string(), .where = where};
}

ForeignImage image_of_record(const Json& record, const std::string& name, const std::string& file,
                             const std::string& where) {
  ForeignImage image = image_in(file, name, where);
  image.state_size(number_member(record, "width"), number_member(record, "height"));
  return image;
}

void require_images(const ForeignSet& set, const char* command, const char* fix) {
  if (!set.is_empty()) return;
  const std::vector<std::string> places = set.ledger.places();
  refuse_source(command, places.empty() ? set.sources.front() : places.front(),
                places.empty() ? "the file has no records" : set.ledger.summary(0),
                Ledger::fix_of(set.ledger.records(), fix) + "; nothing has been written");
}

}  // namespace rematch
