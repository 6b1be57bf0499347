#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/out_of_resources.h"
#include "base/percent.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "learn/data/image_path.h"
#include "model/vision/upright.h"
#include "tools/import/image_files.h"
#include "tools/import/source_files.h"
#include "tools/import/write_steps.h"

// The join of images and the names that annotations give them, which all importers share.
namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostName = 200;  // columns

/// The names that a name in an annotation may stand for, most literal first: with slashes, decoded,
/// without the query of an address or with the path in it (`?d=`).
Strings image_name_forms(const std::string& name) {
  std::string slashes = name;
  std::ranges::replace(slashes, '\\', '/');
  const size_t query = slashes.find('?'), local = slashes.find("?d=");
  const std::string path =
      local == name.npos ? slashes.substr(0, query) : slashes.substr(local + 3);
  Strings forms{name, slashes, percent_decoded(slashes), path, percent_decoded(path)};
  std::erase_if(
      forms, [](const std::string& form) { return form.empty() || form.find('\0') != form.npos; });
  return forms;
}

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

/// Finds image files by the names that annotations give: in the folders near the annotations, else
/// anywhere below by the last parts of the name.
class ImageSearch {
 public:
  /// @param images_dir  where images lie; empty: near the annotations
  explicit ImageSearch(const std::string& images_dir) : images_dir_(images_dir) {}

  struct Found {
    Strings paths = {};      ///< of several, each may be meant
    bool is_loose = true;    ///< only a part of the name matches
    std::string other = {};  ///< another image: one is named, one has the annotation file's name
  };
  Found find(const ForeignImage& image) {
    const Strings forms = image_name_forms(image.name);
    const Paths& folders = folders_for(image.directory);
    Strings named, own;
    for (const std::string& form : forms) {
      for (const fs::path& folder : folders) {
        if (named.empty() && is_file(folder / form)) named = {folder / form};
      }
    }
    const bool is_exact = !named.empty();
    for (auto form = forms.rbegin(); form != forms.rend() && named.empty(); ++form)
      named = find_below(folders.back(), *form, image.split);
    if (!image.stem.empty()) own = find_below(folders.back(), image.stem, image.split);
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

  /// The folders whose files a name may be; images lie somewhere below the last.
  const Paths& folders_for(const std::string& directory) {
    Paths& folders = folders_[directory];
    if (!folders.empty()) return folders;
    const fs::path near = !images_dir_.empty() ? images_dir_ : directory.empty() ? "." : directory;
    fs::path root = near, folder = fs::absolute(near).lexically_normal();
    for (int level = 0; level < 3 && images_dir_.empty(); ++level) {
      const bool is_inside = is_among(folder.filename(), kAnnotationFolders);  // Annotations/a/b
      folder = folder.parent_path();
      if (!is_inside) continue;
      root = folder;
      break;
    }
    folders.push_back(near);
    for (const fs::path& place : {near, root}) {
      if (const fs::path images = find_folder(place, kImageFolders); !images.empty())
        folders.push_back(images);
    }
    folders.push_back(root);
    return folders;
  }

 private:
  /// The image files below a directory, by their name in lower case.
  using Index = std::unordered_map<std::string, Paths>;

  const Index& index_of(const fs::path& root) {
    const auto [known, is_new] = indexes_.try_emplace(root);
    if (!is_new) return known->second;
    for (fs::path& path : list_files(root, is_image_name))
      known->second[folded(path.filename())].push_back(std::move(path));
    return known->second;
  }

  /// The files below a directory that share most of their last folders with `name`, also with an
  /// ending of images appended where it has none. A folder that names a split has no file of
  /// another split.
  Strings find_below(const fs::path& root, const fs::path& name, const std::string& split) {
    const Index& index = index_of(root);
    const bool is_known_split = split == find_split_word(split);  // train, val or test
    Paths names{name};
    for (const char* ending : kImageEndings) {
      if (!is_image_name(name)) names.push_back(name.string() + ending);
    }
    Strings best;
    int most = 1;
    for (const fs::path& each : names) {
      const auto found = index.find(folded(each.filename()));
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

  std::string images_dir_;
  std::unordered_map<std::string, Paths> folders_;
  std::map<fs::path, Index> indexes_;
};

bool has_annotated_size(const ForeignImage& image, const ImageSize& size) {
  return (image.width_px == 0 || image.width_px == size.width_px) &&
         (image.height_px == 0 || image.height_px == size.height_px);
}

class ImageJoin {
 public:
  explicit ImageJoin(const std::string& images_dir) : search_(images_dir) {}

  void add(ForeignImage& image) {
    // else the reader knows the path, or there is none
    if (image.path.empty() && !is_inside_record(image.name)) find_file(image);
    if (!image.path.empty()) {
      const fs::path file = fs::absolute(image.path);
      used_[file.parent_path().lexically_normal()].insert(file.filename());
    }
    try {
      read_size(image);
    } catch (const OutOfResources&) {
      throw;
    } catch (const UserError& error) {
      leave_out(image, reason::kImageUnreadable, error.problems().front().error);
    }
  }

  /// Leaves out images of which only a part of the name was found, in a file with another name too,
  /// and counts what else there is.
  void finish(Ledger& ledger) const {
    for (ForeignImage* image : loosely_found_) {
      if (names_of_.at(image->path).size() > 1)
        image->leave_out(reason::kImageAmbiguous,
                         fmt::format("{}: {} and another name lead to {}", image->where,
                                     show_json(image->name), image->path));
    }
    for (const auto& [folder, names] : used_) {
      for (const fs::directory_entry& entry : list_entries(folder)) {
        if (is_image_name(entry.path()) && !names.contains(entry.path().filename()))
          ledger.note("images in the same folders that no annotation names, left out");
      }
    }
    ledger.note(
        "photos stored turned (EXIF), annotated and trained on as viewers show them",
        std::ranges::count_if(stored_, [](const auto& each) { return !each.second.is_upright(); }));
  }

 private:
  static void leave_out(ForeignImage& image, const char* reason, const std::string& problem) {
    const std::string& name = image.path.empty() ? image.name : image.path;
    image.leave_out(reason, fmt::format("{}: {}", shown_start(name, kMostName), problem));
  }

  void find_file(ForeignImage& image) {
    const std::string name = image.name + "\n" + image.stem;
    // conversations repeat images
    const auto [known, is_new] =
        found_.try_emplace(image.split + "\n" + image.directory + "\n" + name);
    if (is_new) known->second = search_.find(image);
    const auto& [paths, is_loose, other] = known->second;
    if (paths.empty()) return;
    image.path = paths.front();
    names_of_[image.path].insert(name);
    const auto doubt = [&](const char* reason, const std::string& path) {
      image.leave_out(reason, fmt::format("{}: {} or {}", image.where, image.path, path));
    };
    if (paths.size() > 1) doubt(reason::kSeveralFiles, paths[1]);
    if (!other.empty()) doubt(reason::kOtherImage, other);
    if (is_loose) loosely_found_.push_back(&image);
  }

  /// Reads the size of the file and compares it with what its annotation says.
  void read_size(ForeignImage& image) {
    if (!is_valid_utf8(image.name) || !is_valid_utf8(image.path))
      return leave_out(image, reason::kImageUnreadable, "its name is not UTF-8");
    if (image.path.empty() && (image.has_pixels || is_inside_record(image.name)))
      return leave_out(image, reason::kImageInside, image.where);
    if (image.path.empty())
      return leave_out(image, reason::kImageMissing,
                       "looked for it in " + search_.folders_for(image.directory).back().string());
    auto known = stored_.find(image.path);
    if (known == stored_.end())
      known = stored_.emplace(image.path, read_stored_image(image.path)).first;
    const StoredImage& stored = known->second;
    image.size = stored.upright_size();
    if (has_annotated_size(image, image.size)) return;
    const auto& [width, height] = image.size;
    const bool is_exchanged = width == image.height_px && height == image.width_px;
    leave_out(image,
              has_annotated_size(image, stored.size) ? reason::kDrawnRotated : reason::kImageSize,
              fmt::format("viewers show it as {} x {}, the annotation says {} x {}{}", width,
                          height, image.width_px, image.height_px,
                          is_exchanged ? " (width and height exchanged, or a turned copy)" : ""));
  }

  ImageSearch search_;
  std::unordered_map<std::string, ImageSearch::Found> found_;
  std::unordered_map<std::string, std::set<std::string>> names_of_;  // by path of the image
  std::vector<ForeignImage*> loosely_found_;
  std::map<fs::path, std::set<fs::path>> used_;          // file names by folder
  std::unordered_map<std::string, StoredImage> stored_;  // by path
};

}  // namespace

void join_images(ForeignSet& set) {
  ImageJoin images_of(set.options.images_dir);
  for (auto& [split, images] : set.splits) {
    for (ForeignImage& image : images) {
      throw_if_interrupted();
      image.split = split;
      images_of.add(image);
    }
  }
  images_of.finish(set.ledger);
}

}  // namespace rematch
