#include "tools/import/image_search.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/interrupt.h"
#include "base/json.h"
#include "base/percent.h"
#include "base/text.h"
#include "learn/data/image_files.h"
#include "tools/import/reasons.h"
#include "tools/import/source_files.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostCompared = 20'000;

/// The path part of an address, and the value of its `?d=`.
std::string without_address(std::string name) {
  if (const size_t scheme = name.find("://"); scheme != name.npos && scheme < 10) {
    const bool is_file_scheme = name.starts_with("file:");
    name.erase(0, scheme + 3);
    if (!is_file_scheme) name.erase(0, std::min(name.find('/'), name.size()));
  }
  const size_t query = name.find('?');
  if (query == name.npos) return name;
  const size_t value = name.find("d=", query);
  const bool is_local = value != name.npos && (name[value - 1] == '?' || name[value - 1] == '&');
  return is_local ? name.substr(value + 2, name.find('&', value) - value - 2)
                  : name.substr(0, query);
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
int shared_parts(const fs::path& path, const fs::path& name) {
  int shared = 0;
  for (auto a = path.end(), b = name.end(); a != path.begin() && b != name.begin(); ++shared) {
    if (folded((--a)->string()) != folded((--b)->string())) break;
  }
  return shared;
}

/// The file of this path; where it has no ending of images, those with one appended.
std::vector<std::string> existing(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) return {path.string()};
  std::vector<std::string> files;
  for (std::string ending : kImageEndings) {
    if (is_image_name(path)) break;
    for (const bool is_upper : {false, true}) {
      if (is_upper) std::transform(ending.begin(), ending.end(), ending.begin(), ::toupper);
      const std::string file = path.string() + ending;
      const bool is_new = std::none_of(files.begin(), files.end(), [&](const std::string& known) {
        return fs::equivalent(known, file, ignored);  // where letter case does not count
      });
      if (is_new && fs::is_regular_file(file, ignored)) files.push_back(file);
    }
  }
  return files;
}

}  // namespace

ImageIndex::ImageIndex(const fs::path& root) : root_(root) {
  for (fs::path& path : list_files(root, is_image_name))
    by_name_[folded(path.filename().string())].push_back(std::move(path));
}

bool ImageIndex::is_of_other_split(const fs::path& path, const std::string& split) const {
  if (split != find_split_word(split)) return false;  // not one of train, val and test
  const std::string named = find_split_folder(path, root_);
  return !named.empty() && named != split;
}

std::vector<std::string> ImageIndex::find(const std::string& name, const std::string& split) const {
  std::vector<std::string> names{name};
  if (!is_image_name(name)) {
    for (const char* ending : kImageEndings) names.push_back(name + ending);
  }
  int most = 1;
  std::vector<std::string> best;
  for (const std::string& each : names) {
    const auto found = by_name_.find(folded(last_part(each)));
    if (found == by_name_.end()) continue;
    for (const fs::path& path : found->second) {
      const int shared = shared_parts(path, each);
      if (shared < most || is_of_other_split(path, split)) continue;
      if (shared > most) best.clear();
      most = shared;
      best.push_back(path.string());
    }
  }
  return best;
}

std::string ImageIndex::nearest(const std::string& name) const {
  const std::string wanted = folded(last_part(name));
  std::vector<std::string> names;
  for (const auto& [each, paths] : by_name_) names.push_back(each);
  std::sort(names.begin(), names.end());
  std::vector<std::string> near;
  if (by_name_.contains(wanted))
    near = {wanted};
  else if (names.size() <= kMostCompared)
    near = near_names(wanted, names, 1);
  return near.empty() ? "" : by_name_.at(near.front()).front().lexically_normal().string();
}

std::vector<std::string> image_name_forms(const std::string& name) {
  std::string slashes = name;
  std::replace(slashes.begin(), slashes.end(), '\\', '/');
  std::vector<std::string> forms;
  for (std::string& form :
       std::vector<std::string>{name, slashes, percent_decoded(slashes), without_address(slashes),
                                percent_decoded(without_address(slashes))}) {
    const bool is_name = !form.empty() && form.find('\0') == form.npos;
    if (is_name && std::find(forms.begin(), forms.end(), form) == forms.end())
      forms.push_back(std::move(form));
  }
  return forms;
}

fs::path ImageSearch::root_for(const std::string& directory) const {
  if (!images_dir_.empty()) return images_dir_;
  const fs::path near = directory.empty() ? "." : directory;
  fs::path folder = fs::absolute(near).lexically_normal(), up = near / "..";
  for (int level = 0; level < 3; ++level) {  // Annotations/, or a folder in it
    if (is_among(folder.filename().string(), kAnnotationFolders)) return up.lexically_normal();
    folder = folder.parent_path();
    up /= "..";
  }
  return near;
}

const std::vector<fs::path>& ImageSearch::folders_for(const std::string& directory) {
  const auto [known, is_new] = folders_.try_emplace(directory);
  std::vector<fs::path>& folders = known->second;
  if (!is_new) return folders;
  const fs::path root = root_for(directory),
                 near = images_dir_.empty() && !directory.empty() ? fs::path(directory) : root;
  folders.push_back(near);
  for (const fs::path& place : {near, root}) {
    if (const fs::path images = find_folder(place, kImageFolders); !images.empty())
      folders.push_back(images);
  }
  folders.push_back(root);
  return folders;
}

std::vector<std::string> ImageSearch::look_up(const std::string& directory,
                                              const std::string& name) {
  for (const fs::path& folder : folders_for(directory)) {
    if (std::vector<std::string> paths = existing(folder / name); !paths.empty()) return paths;
  }
  return {};
}

const ImageIndex& ImageSearch::index_of(const fs::path& root) {
  return indexes_.try_emplace(root, root).first->second;
}

ImageSearch::Found ImageSearch::find(const ForeignImage& image) {
  const std::vector<std::string> forms = image_name_forms(image.name);
  std::vector<std::string> named;
  for (const std::string& form : forms) {
    if (named.empty()) named = look_up(image.directory, form);
  }
  const bool is_own_name = !named.empty() && fs::path(named.front()).stem().string() == image.stem;
  const std::vector<std::string> own = image.stem.empty() || is_own_name
                                           ? std::vector<std::string>()
                                           : look_up(image.directory, image.stem);
  if (!named.empty())
    return {.paths = named, .is_loose = false, .other = own.empty() ? "" : own.front()};
  if (!own.empty()) return {.paths = own, .is_loose = false};
  const ImageIndex& index = index_of(root_for(image.directory));
  for (auto form = forms.rbegin(); form != forms.rend(); ++form) {
    std::vector<std::string> paths = index.find(as_relative(*form), image.split);
    if (!paths.empty()) return {.paths = std::move(paths)};
  }
  return {};
}

std::string ImageSearch::explain(const ForeignImage& image) {
  const std::vector<std::string> forms = image_name_forms(image.name);
  const std::string form = forms.empty() ? "" : forms.back();
  const fs::path root = root_for(image.directory);
  const std::string near = index_of(root).nearest(form);
  return fmt::format("looked for {} in {}{}", show_json(last_part(form)),
                     root.lexically_normal().string(),
                     near.empty() ? "" : "; the nearest file is " + near);
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
      const auto& [paths, is_loose, other] = found->second;
      if (paths.empty()) continue;
      image.path = paths.front();
      if (paths.size() > 1)
        image.leave_out(reason::kSeveralFiles,
                        fmt::format("{}: {} or {}", image.where, paths[0], paths[1]));
      if (!other.empty())
        image.leave_out(reason::kOtherImage,
                        fmt::format("{}: it names {}, and there is {}", image.where,
                                    show_json(image.name), other));
      if (is_loose) loosely_found.push_back(&image);
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
