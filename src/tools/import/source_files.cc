#include "tools/import/source_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/missing_path.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/utf16.h"
#include "learn/data/foreign_file.h"
#include "tools/import/image_files.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::string> kSplitWords = {
    {"train", "train"},    {"training", "train"}, {"val", "val"},     {"valid", "val"},
    {"validation", "val"}, {"test", "test"},      {"testing", "test"}};

/// The files of a form that a source stands for.
Paths files_of(const std::string& source, const SourceForm& form) {
  if (!path_exists(source))
    throw missing_path("file or directory", source, "give the annotations, or their directory");
  if (!is_dir(source)) return {source};
  Paths found = list_files(source, [&](const fs::path& path) {
    return lower_case(path.string()).ends_with(form.ending) &&
           (form.fits == nullptr || form.fits(path));
  });
  // COCO's own directory has captions and key points of the same images next to the boxes
  const auto is_other = [](const fs::path& file) {
    return !file.filename().string().starts_with("instances_");
  };
  if (!std::ranges::all_of(found, is_other)) std::erase_if(found, is_other);
  if (found.empty())
    refuse_source(form.command, source,
                  fmt::format("it has no {} files of this form", form.ending));
  return found;
}

std::string split_of(const fs::path& file, const fs::path& source, const SourceForm& form,
                     const ImportOptions& options) {
  if (!form.is_per_image) return options.split.empty() ? guess_split(file) : options.split;
  const fs::path root = is_dir(source) ? source : source.parent_path();
  for (std::string split :
       {find_split_folder(file, root), options.split, find_split_word(root.filename())}) {
    if (!split.empty()) return split;
  }
  return "train";
}

SplitFiles find_files(const Strings& sources, const SourceForm& form,
                      const ImportOptions& options) {
  SplitFiles splits;
  for (const std::string& source : sources) {
    for (const fs::path& file : files_of(source, form))
      splits[split_of(file, source, form, options)].push_back(file);
  }
  for (const auto& [split, files] : splits) {
    if (form.is_per_image || !options.split.empty() || files.size() < 2) continue;
    throw config_error(
        {.error = fmt::format("two files are the same split, \"{}\"", split),
         .where = files[1],
         .what = fmt::format("its name means the same split as {}", files[0].string()),
         .fix = "convert each file with --split NAME, or both with --split " + split});
  }
  return splits;
}

}  // namespace

void refuse_source(const char* command, const std::string& where, const std::string& what,
                   const std::string& fix) {
  throw data_error(
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
  require_utf8(text, path, shell_word(path));
  return std::string(text);
}

Strings read_lines(const std::string& path) {
  constexpr const char* kBlank = " \t\r\f\v";
  Strings lines = split(text_of(read_file(path), path), '\n');
  for (std::string& line : lines) {
    line.erase(line.find_last_not_of(kBlank) + 1);
    line.erase(0, line.find_first_not_of(kBlank));
  }
  return lines;
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
    if (std::string word = find_split_word(part); !word.empty()) split = std::move(word);
  }
  return split;
}

std::string guess_split(const std::string& path) {
  const fs::path file(path);
  for (const fs::path& part : {file.stem(), file.parent_path().filename()}) {
    if (std::string word = find_split_word(part); !word.empty()) return word;
  }
  return file.stem();
}

fs::path find_folder(const fs::path& directory, std::span<const char* const> names) {
  std::map<std::string, fs::path> folders;
  for (const fs::directory_entry& entry : list_entries(directory)) {
    if (is_dir(entry.path())) folders.emplace(lower_case(entry.path().filename()), entry.path());
  }
  for (const char* name : names) {
    if (const auto found = folders.find(name); found != folders.end()) return found->second;
  }
  return {};
}

ForeignSet read_sources(const Strings& sources, const SourceForm& form, ForeignSet set,
                        const FileReader& read, SplitFiles listed) {
  if (listed.empty()) listed = find_files(sources, form, set.options);
  if (set.names.is_empty()) set.names = NamesById(set.options.names);
  set.classes = set.names.in_order();
  size_t num_images = 0;
  for (const auto& [split, files] : listed) {
    ForeignImages& images = set.splits[split];
    for (const fs::path& file : files) {
      throw_if_interrupted();
      set.sources.push_back(file);
      set.ledger.attempt(file, [&] { read(file, set, images); });
    }
    num_images += images.size();
  }
  if (num_images > 0) return set;
  const Strings places = set.ledger.places();
  refuse_source(form.command, places.empty() ? set.sources.front() : places.front(),
                places.empty() ? "it has no records" : set.ledger.summary(0),
                Ledger::fix_of(set.ledger.records(), form.fix));
}

ForeignImage image_of_file(const fs::path& annotation) {
  ForeignImage image = image_of_record({}, annotation.stem(), annotation, annotation);
  image.stem = image.name;
  return image;
}

ForeignImage image_of_record(const Json& record, const std::string& name, const std::string& file,
                             const std::string& where) {
  ForeignImage image{.name = name, .directory = fs::path(file).parent_path(), .where = where};
  for (const std::string prefix : {"", "image_", "img_"})
    image.state_size(member(record, {(prefix + "width").c_str()}),
                     member(record, {(prefix + "height").c_str()}));
  return image;
}

Json parse_record(std::string_view text) {
  try {
    return parse_written_json(text, "");
  } catch (const UserError& error) {
    const Problem& problem = error.problems().front();
    throw LeftOut{fmt::format("{}|{}", reason::kDamagedRecord, problem.fix), problem.what};
  }
}

FileReader each_record(RecordReader read) {
  return [read](const std::string& path, ForeignSet& set, ForeignImages& images) {
    const std::string bytes = read_file(path);
    const std::string_view whole = text_of(bytes, path);
    const size_t first = whole.find_first_not_of(" \t\r\n");
    if (first != whole.npos && whole[first] == '[') {
      const Json list = parse_written_json(whole, path);
      for (size_t i = 0; i < list.size(); ++i) {
        const std::string where = fmt::format("{}, record {}", path, i + 1);
        set.ledger.attempt(where, [&] { read(list[i], path, where, set, images); });
      }
      return;
    }
    int64_t number = 0;
    for (const std::string& line : split(whole, '\n')) {
      throw_if_interrupted();
      const std::string where = fmt::format("{}:{}", path, ++number);
      if (line.find_first_not_of(" \t\r") == line.npos) continue;
      set.ledger.attempt(where, [&] { read(parse_record(line), path, where, set, images); });
    }
  };
}

}  // namespace rematch
