#include "tools/import/image_search.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

#include "base/interrupt.h"
#include "base/json.h"
#include "base/percent.h"
#include "base/text.h"
#include "tools/import/image_files.h"
#include "tools/import/reasons.h"
#include "tools/import/source_files.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFiles = 200'000, kMostEntries = 1'000'000, kMostCompared = 20'000;
constexpr int kDeepest = 12;  ///< folders below the root

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// The path part of an address, and the value of its `?d=`.
std::string without_address(std::string name) {
  if (const size_t scheme = name.find("://"); scheme != name.npos && scheme < 10) {
    const bool is_file_scheme = name.starts_with("file:");
    name.erase(0, scheme + 3);
    if (!is_file_scheme) name.erase(0, std::min(name.find('/'), name.size()));
  }
  if (const size_t query = name.find('?'); query != name.npos) {
    const size_t value = name.find("d=", query);
    const bool is_local = value != name.npos && (name[value - 1] == '?' || name[value - 1] == '&');
    name = is_local ? name.substr(value + 2, name.find('&', value) - value - 2)
                    : name.substr(0, query);
  }
  return name;
}

/// A path without drive letter, leading slashes and `..`.
std::string as_relative(std::string name) {
  if (name.size() > 1 && name[1] == ':') name.erase(0, 2);
  while (name.starts_with('/') || name.starts_with("./") || name.starts_with("../"))
    name.erase(0, name.find('/') + 1);
  return name;
}

std::string last_part(const std::string& name) { return name.substr(name.rfind('/') + 1); }

/// The form in which names are compared: macOS writes "é" as two characters, Windows ignores case.
std::string folded(const std::string& name) {
  return lower_case(is_valid_utf8(name) ? normalize_nfc(name) : name);
}

/// Number of last folders and names that two paths share.
int shared_parts(const fs::path& path, const std::string& name) {
  const std::string a = folded(path.generic_string()), b = folded(name);
  int shared = 0;
  size_t i = a.size(), j = b.size();
  while (true) {
    if (j == 0 || i == 0) return shared + (j == 0 && (i == 0 || a[i - 1] == '/') ? 1 : 0);
    if (a[i - 1] != b[j - 1]) return shared;
    if (b[j - 1] == '/') ++shared;
    --i, --j;
  }
}

/// The file of this path; where it has no ending of images, those with one appended.
std::vector<std::string> existing(const fs::path& path) {
  if (is_file(path)) return {path.string()};
  return is_image_name(path) ? std::vector<std::string>() : find_with_ending(path);
}

std::vector<std::string> as_texts(const std::vector<fs::path>& paths) {
  std::vector<std::string> texts;
  for (const fs::path& path : paths) texts.push_back(path.string());
  return texts;
}

}  // namespace

ImageIndex::ImageIndex(const fs::path& root) : root_(root) {
  std::error_code error;
  std::set<fs::path> visited;
  size_t num_files = 0, num_entries = 0;
  std::vector<std::pair<fs::path, int>> open{{root, 0}};
  while (!open.empty()) {
    const auto [directory, depth] = open.back();
    open.pop_back();
    if (!visited.insert(fs::weakly_canonical(directory, error)).second) continue;
    for (const fs::directory_entry& entry : list_entries(directory)) {
      std::error_code unreachable;
      ++num_entries;
      if (entry.is_directory(unreachable)) {
        if (depth < kDeepest) open.emplace_back(entry.path(), depth + 1);
      } else if (is_image_name(entry.path()) && num_files++ < kMostFiles) {
        by_name_[folded(entry.path().filename().string())].push_back(entry.path());
      }
    }
    if (num_files >= kMostFiles || num_entries >= kMostEntries) break;
    throw_if_interrupted();
  }
  for (auto& [name, paths] : by_name_) std::sort(paths.begin(), paths.end());
}

bool ImageIndex::is_of_other_split(const fs::path& path, const std::string& split) const {
  if (split != find_split_word(split)) return false;  // not one of train, val and test
  const std::string named = find_split_folder(path, root_);
  return !named.empty() && named != split;
}

std::vector<fs::path> ImageIndex::find(const std::string& name, const std::string& split) const {
  std::vector<std::string> names{name};
  if (!is_image_name(name)) {
    for (const char* ending : kImageEndings) names.push_back(name + ending);
  }
  int most = 0;
  std::vector<fs::path> best;
  for (const std::string& each : names) {
    const auto found = by_name_.find(folded(last_part(each)));
    if (found == by_name_.end()) continue;
    for (const fs::path& path : found->second) {
      if (is_of_other_split(path, split)) continue;
      const int shared = shared_parts(path, each);
      if (shared > most) best.clear();
      most = std::max(most, shared);
      if (shared == most) best.push_back(path);
    }
  }
  return best;
}

fs::path ImageIndex::nearest(const std::string& name) const {
  const std::string wanted = folded(last_part(name));
  if (const auto same = by_name_.find(wanted); same != by_name_.end()) return same->second.front();
  if (by_name_.size() > kMostCompared) return {};
  std::vector<std::string> names;
  for (const auto& [each, paths] : by_name_) names.push_back(each);
  std::sort(names.begin(), names.end());
  const std::vector<std::string> near = near_names(wanted, names, 1);
  if (!near.empty()) return by_name_.at(near.front()).front();
  std::string longest;  // Label Studio and Roboflow add to a name: "3f2a9c1b-a.png"
  for (const std::string& each : names) {
    if (each.size() > longest.size() && wanted.size() > each.size() && wanted.ends_with(each) &&
        std::isalnum(static_cast<unsigned char>(wanted[wanted.size() - each.size() - 1])) == 0)
      longest = each;
  }
  return longest.empty() ? fs::path() : by_name_.at(longest).front();
}

std::vector<std::string> image_name_forms(const std::string& name) {
  std::vector<std::string> forms;
  const auto add = [&](std::string form) {
    if (!form.empty() && std::find(forms.begin(), forms.end(), form) == forms.end())
      forms.push_back(std::move(form));
  };
  add(name);
  std::string slashes = name;
  std::replace(slashes.begin(), slashes.end(), '\\', '/');
  add(slashes);
  add(percent_decoded(slashes));
  add(without_address(slashes));
  add(percent_decoded(without_address(slashes)));
  return forms;
}

fs::path ImageSearch::root_for(const std::string& directory) const {
  if (!images_dir_.empty()) return images_dir_;
  fs::path path = directory.empty() ? "." : directory;
  const fs::path whole = fs::absolute(path).lexically_normal();
  // Annotations/, or a folder in it
  fs::path up, folder = whole;
  for (int level = 0; level < 3 && folder.has_relative_path(); ++level) {
    up /= "..";
    if (is_among(folder.filename().string(), kAnnotationFolders) &&
        fs::exists(folder.parent_path()))
      return (path / up).lexically_normal();
    folder = folder.parent_path();
  }
  return path;
}

const std::vector<fs::path>& ImageSearch::folders_for(const std::string& directory) {
  const auto [known, is_new] = folders_.try_emplace(directory);
  if (!is_new) return known->second;
  std::vector<fs::path>& folders = known->second;
  if (!images_dir_.empty()) {
    folders.emplace_back(images_dir_);
    return folders;
  }
  const fs::path near = directory.empty() ? "." : directory, root = root_for(directory);
  folders.push_back(near);
  for (const fs::path& place : {near, root}) {
    if (const fs::path images = find_folder(place, kImageFolders); !images.empty())
      folders.push_back(images);
  }
  if (root != near) folders.push_back(root);
  return folders;
}

const ImageIndex& ImageSearch::index_of(const fs::path& root) {
  return indexes_.try_emplace(root, root).first->second;
}

ImageSearch::Found ImageSearch::find(const ForeignImage& image) {
  const std::vector<std::string> forms = image_name_forms(image.name);
  const std::vector<fs::path>& folders = folders_for(image.directory);
  for (const std::string& form : forms) {
    if (form.find('\0') != form.npos) continue;
    for (const fs::path& folder : folders) {
      if (auto paths = existing(folder / form); !paths.empty())
        return {.paths = std::move(paths), .is_loose = false};
    }
  }
  for (const std::string& form : forms) {
    const std::string last = last_part(form);
    if (last.empty() || last == form || last.find('\0') != last.npos) continue;
    for (const fs::path& folder : folders) {
      if (auto paths = existing(folder / last); !paths.empty()) return {std::move(paths)};
    }
  }
  for (const fs::path& folder : folders) {
    if (image.stem.empty()) break;
    const fs::path named = folder / image.stem;
    if (is_file(named)) return {.paths = {named.string()}, .is_loose = false};
    if (auto paths = find_with_ending(named); !paths.empty())
      return {.paths = std::move(paths), .is_loose = false};
  }
  const ImageIndex& index = index_of(root_for(image.directory));
  for (auto form = forms.rbegin(); form != forms.rend(); ++form) {
    const std::vector<fs::path> paths = index.find(as_relative(*form), image.split);
    if (!paths.empty()) return {.paths = as_texts(paths)};
  }
  return {};
}

std::string ImageSearch::explain(const ForeignImage& image) {
  const std::string form = image_name_forms(image.name).back();
  const fs::path root = root_for(image.directory);
  std::string text = fmt::format("looked for {} in {}", show_json(last_part(form)),
                                 root.lexically_normal().string());
  std::error_code ignored;
  if (!fs::is_directory(root, ignored)) return text + ", which is no directory";
  if (const fs::path near = index_of(root).nearest(form); !near.empty())
    text += fmt::format("; the nearest file is {}", near.lexically_normal().string());
  return text;
}

std::string ImageSearch::suggest(const ForeignImage& image) {
  const fs::path root = fs::absolute(root_for(image.directory)).lexically_normal();
  const fs::path above =
      root.has_filename() ? root.parent_path() : root.parent_path().parent_path();
  if (above == above.root_path()) return "";
  const ImageIndex around(above);
  for (const std::string& form : image_name_forms(image.name)) {
    const std::string name = as_relative(form);
    const std::vector<fs::path> found = around.find(name, image.split);
    if (found.size() != 1) continue;
    fs::path directory = found.front().parent_path();
    const std::string text = found.front().generic_string();
    if (text.ends_with("/" + name)) directory = text.substr(0, text.size() - name.size() - 1);
    return fs::proximate(directory).string();
  }
  return "";
}

void find_images(ForeignSet& set, ImageSearch& search) {
  /// The name that led to a file first, and if others do too.
  struct Owner {
    std::string name;
    bool is_one_of_several = false;
  };
  std::unordered_map<std::string, Owner> owners;  // by path
  std::vector<ForeignImage*> loosely_found;
  for (auto& [split, images] : set.splits) {
    std::unordered_map<std::string, ImageSearch::Found> known;  // conversations repeat images
    for (ForeignImage& image : images) {
      throw_if_interrupted();
      if (!image.path.empty()) continue;  // the reader knows it
      image.split = split;
      const std::string name = image.name + "\n" + image.stem;
      const auto [found, is_new] = known.try_emplace(image.directory + "\n" + name);
      if (is_new) found->second = search.find(image);
      const std::vector<std::string>& paths = found->second.paths;
      if (paths.empty()) continue;
      image.path = paths.front();
      if (paths.size() > 1)
        image.leave_out(reason::kSeveralFiles,
                        fmt::format("{}: {} or {}", image.where, paths[0], paths[1]));
      if (found->second.is_loose) loosely_found.push_back(&image);
      Owner& owner = owners.try_emplace(image.path, Owner{name}).first->second;
      owner.is_one_of_several = owner.is_one_of_several || owner.name != name;
    }
  }
  for (ForeignImage* image : loosely_found) {
    if (owners.at(image->path).is_one_of_several)
      image->leave_out(reason::kImageAmbiguous,
                       fmt::format("{}: {} and another name lead to {}", image->where,
                                   show_json(image->name), image->path));
  }
}

}  // namespace rematch
