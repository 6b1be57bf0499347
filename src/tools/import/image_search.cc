#include "tools/import/image_search.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/percent.h"
#include "base/text.h"
#include "tools/import/image_files.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

Strings image_name_forms(const std::string& name) {
  std::string slashes = name;
  std::ranges::replace(slashes, '\\', '/');
  Strings forms;
  for (std::string& form :
       Strings{name, slashes, percent_decoded(slashes), without_address(slashes),
               percent_decoded(without_address(slashes))}) {
    const bool is_name = !form.empty() && form.find('\0') == form.npos;
    if (is_name && !contains(forms, form)) forms.push_back(std::move(form));
  }
  return forms;
}

fs::path ImageSearch::root_for(const std::string& directory) const {
  if (!images_dir_.empty()) return images_dir_;
  fs::path near = directory.empty() ? "." : directory;
  fs::path folder = fs::absolute(near).lexically_normal(), up = near / "..";
  for (int level = 0; level < 3; ++level) {  // Annotations/, or a folder in it
    if (is_among(folder.filename(), kAnnotationFolders)) return up.lexically_normal();
    folder = folder.parent_path();
    up /= "..";
  }
  return near;
}

const Paths& ImageSearch::folders_for(const std::string& directory) {
  const auto [known, is_new] = folders_.try_emplace(directory);
  Paths& folders = known->second;
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

const ImageSearch::Index& ImageSearch::index_of(const fs::path& root) {
  const auto [known, is_new] = indexes_.try_emplace(root);
  if (!is_new) return known->second;
  for (fs::path& path : list_files(root, is_image_name))
    known->second[folded(path.filename())].push_back(std::move(path));
  return known->second;
}

Strings ImageSearch::find_below(const fs::path& root, const std::string& name,
                                const std::string& split) {
  const Index& index = index_of(root);
  const bool is_known_split = split == find_split_word(split);  // train, val or test
  Strings names{name}, best;
  for (const char* ending : kImageEndings) {
    if (!is_image_name(name)) names.push_back(name + ending);
  }
  int most = 1;
  for (const std::string& each : names) {
    const auto found = index.find(folded(last_part(each)));
    if (found == index.end()) continue;
    for (const fs::path& path : found->second) {
      const std::string named = find_split_folder(path, root);
      const int shared = shared_parts(path, each);
      if (shared < most || (is_known_split && !named.empty() && named != split)) continue;
      if (shared > most) best.clear();
      most = shared;
      best.push_back(path);
    }
  }
  return best;
}

ImageSearch::Found ImageSearch::find(const ForeignImage& image) {
  const Strings forms = image_name_forms(image.name);
  const fs::path root = root_for(image.directory);
  Strings named, own;
  for (const std::string& form : forms) {
    for (const fs::path& folder : folders_for(image.directory)) {
      if (named.empty() && is_file(folder / form)) named = {(folder / form)};
    }
  }
  const bool is_exact = !named.empty();
  for (auto form = forms.rbegin(); form != forms.rend() && named.empty(); ++form)
    named = find_below(root, as_relative(*form), image.split);
  if (!image.stem.empty()) own = find_below(root, image.stem, image.split);
  const bool is_own = !is_exact && !own.empty();
  Found found{.paths = is_own ? own : named, .is_loose = !is_exact && !is_own};
  for (const fs::path path : own) {
    for (const fs::path other : named) {
      const bool is_beside =
          path.lexically_normal().parent_path() == other.lexically_normal().parent_path();
      if (is_beside && path.stem() != other.stem()) found.other = is_own ? other : path;
    }
  }
  return found;
}

std::string ImageSearch::explain(const ForeignImage& image) const {
  const Strings forms = image_name_forms(image.name);
  const std::string form = forms.empty() ? "" : forms.back();
  const fs::path root = root_for(image.directory);
  return fmt::format("looked for {} in {}", show_json(last_part(form)),
                     root.lexically_normal().string());
}

}  // namespace rematch
