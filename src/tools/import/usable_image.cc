#include "tools/import/usable_image.h"

#include <fmt/core.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/out_of_resources.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "tools/draw/encode.h"
#include "tools/import/reasons.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;
constexpr int kCopyQuality = 95;

bool has_annotated_size(const ForeignImage& image, const ImageSize& size) {
  return (image.width_px == 0 || image.width_px == size.width_px) &&
         (image.height_px == 0 || image.height_px == size.height_px);
}

bool is_jpeg_name(const std::string& path) {
  return lower_case(path).ends_with(".jpg") || lower_case(path).ends_with(".jpeg");
}

}  // namespace

std::optional<UsableImage> ImageChooser::leave_out(const ForeignImage& image, const char* reason,
                                                   const std::string& problem) {
  ledger_.lose_record(reason,
                      fmt::format("{}: {}", image.path.empty() ? image.name : image.path, problem));
  return std::nullopt;
}

std::optional<UsableImage> ImageChooser::choose(const ForeignImage& image) {
  if (!is_valid_utf8(image.name) || !is_valid_utf8(image.path))
    return leave_out(image, reason::kImageUnreadable, "its name is not UTF-8");
  if (image.path.empty())
    return leave_out(image, reason::kImageMissing,
                     ledger_.records().contains(reason::kImageMissing) ? "it was not found"
                                                                       : search_.explain(image));
  const auto known = known_.find(image.path);
  if (known != known_.end() && has_annotated_size(image, known->second.size)) return known->second;
  try {
    const StoredImage stored = read_stored_image(image.path);
    UsableImage usable{.path = image.path, .size = stored.upright_size()};
    if (!has_annotated_size(image, usable.size)) return leave_out_size(image, stored);
    if (!stored.is_upright()) usable.path = choose_rotated(image);
    return known_.insert_or_assign(image.path, usable).first->second;
  } catch (const OutOfResources&) {
    throw;
  } catch (const UserError& error) {
    return leave_out(image, reason::kImageUnreadable, error.problems().front().error);
  }
}

std::optional<UsableImage> ImageChooser::leave_out_size(const ForeignImage& image,
                                                        const StoredImage& stored) {
  if (!stored.is_upright() && has_annotated_size(image, stored.size))
    return leave_out(image, reason::kDrawnRotated,
                     "EXIF rotates it, its annotation does not: remove the tag with "
                     "exiftool -Orientation= -n FILE");
  const ImageSize size = stored.upright_size();
  const bool is_exchanged =
      size == ImageSize{.width_px = image.height_px, .height_px = image.width_px};
  const auto shown = [](int px) { return px == 0 ? std::string("?") : std::to_string(px); };
  return leave_out(
      image, reason::kImageSize,
      fmt::format("{} {} x {}, the annotation says {} x {}{}",
                  stored.is_upright() ? "it is" : "viewers show it as", size.width_px,
                  size.height_px, shown(image.width_px), shown(image.height_px),
                  is_exchanged ? " (width and height exchanged, or a turned copy)" : ""));
}

std::string ImageChooser::choose_rotated(const ForeignImage& image) {
  if (!options_.upright) {
    ledger_.note("photos stored turned (EXIF), annotated and trained on as viewers show them");
    return image.path;
  }
  load_image(image.path);  // finds damaged images before anything is written
  copies_.push_back({.source = image.path, .path = new_copy_name(image.path)});
  ledger_.note("upright copies of photos stored rotated (EXIF)");
  return copies_.back().path;
}

std::string ImageChooser::new_copy_name(const std::string& source) {
  const std::string stem = fs::path(source).stem().string(),
                    ending = is_jpeg_name(source) ? ".jpg" : ".png";
  std::string name = stem + ending;
  for (int i = 2; !copy_names_.insert(name).second; ++i)
    name = fmt::format("{}_{}{}", stem, i, ending);
  return join_path(directory_, name);
}

void write_copies(const std::vector<TurnedCopy>& copies) {
  for (const auto& [source, path] : copies) {
    const Image picture = load_image(source);
    make_directories(fs::path(path).parent_path().string());
    write_file_atomic(
        path, is_jpeg_name(path) ? encode_jpeg(picture, kCopyQuality) : encode_png(picture));
  }
}

}  // namespace rematch
