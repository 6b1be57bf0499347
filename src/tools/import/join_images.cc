#include "tools/import/write_steps.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/out_of_resources.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "learn/data/image_path.h"
#include "model/vision/upright.h"
#include "tools/import/image_files.h"
#include "tools/import/image_search.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostName = 200;  // columns

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
  /// and counts the images next to them that no record names.
  void finish(Ledger& ledger) const {
    for (ForeignImage* image : loosely_found_) {
      if (names_of_.at(image->path).size() > 1)
        image->leave_out(reason::kImageAmbiguous,
                         fmt::format("{}: {} and another name lead to {}", image->where,
                                     show_json(image->name), image->path));
    }
    for (const auto& [folder, names] : used_) {
      for (const fs::directory_entry& entry : list_entries(folder)) {
        const fs::path name = entry.path().filename();
        if (is_image_name(name) && !name.string().starts_with("._") && !names.contains(name))
          ledger.note("images in the same folders that no annotation names, left out");
      }
    }
  }

  int64_t num_turned = 0;  ///< files stored turned (EXIF)

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

  void read_size(ForeignImage& image) {
    if (!is_valid_utf8(image.name) || !is_valid_utf8(image.path))
      return leave_out(image, reason::kImageUnreadable, "its name is not UTF-8");
    if (image.path.empty() && (image.has_pixels || is_inside_record(image.name)))
      return leave_out(image, reason::kImageInside, image.where);
    if (image.path.empty())
      return leave_out(image, reason::kImageMissing,
                       num_missing_++ == 0 ? search_.explain(image) : "it was not found");
    auto known = stored_.find(image.path);
    if (known == stored_.end()) {
      known = stored_.emplace(image.path, read_stored_image(image.path)).first;
      num_turned += !known->second.is_upright();
    }
    image.size = known->second.upright_size();
    if (!has_annotated_size(image, image.size)) leave_out_size(image, known->second);
  }

  /// Leaves out an image whose annotation says another size.
  static void leave_out_size(ForeignImage& image, const StoredImage& stored) {
    if (!stored.is_upright() && has_annotated_size(image, stored.size))
      return leave_out(image, reason::kDrawnRotated,
                       "EXIF rotates it, its annotation does not: remove the tag with "
                       "exiftool -Orientation= -n FILE");
    const auto& [width, height] = image.size;
    const bool is_exchanged = width == image.height_px && height == image.width_px;
    const auto shown = [](int px) { return px == 0 ? std::string("?") : std::to_string(px); };
    leave_out(image, reason::kImageSize,
              fmt::format("{} {} x {}, the annotation says {} x {}{}",
                          stored.is_upright() ? "it is" : "viewers show it as", width, height,
                          shown(image.width_px), shown(image.height_px),
                          is_exchanged ? " (width and height exchanged, or a turned copy)" : ""));
  }

  ImageSearch search_;
  std::unordered_map<std::string, ImageSearch::Found> found_;
  std::unordered_map<std::string, std::set<std::string>> names_of_;  // by path of the image
  std::vector<ForeignImage*> loosely_found_;
  std::map<fs::path, std::set<fs::path>> used_;          // file names by folder
  std::unordered_map<std::string, StoredImage> stored_;  // by path
  int64_t num_missing_ = 0;
};

}  // namespace

void join_images(ForeignSet& set, const std::string& images_dir) {
  ImageJoin images_of(images_dir);
  for (auto& [split, images] : set.splits) {
    for (ForeignImage& image : images) {
      throw_if_interrupted();
      image.split = split;
      images_of.add(image);
    }
  }
  images_of.finish(set.ledger);
  set.ledger.note("photos stored turned (EXIF), annotated and trained on as viewers show them",
                  images_of.num_turned);
}

}  // namespace rematch
