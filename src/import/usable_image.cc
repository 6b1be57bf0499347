#include "import/usable_image.h"

#include <fmt/core.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/out_of_resources.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "draw/encode.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMaxExamples = 5;
constexpr int kCopyQuality = 95;

bool has_annotated_size(const ForeignImage& image, const ImageSize& size) {
  const bool is_known = image.width_px > 0 && image.height_px > 0;
  return !is_known || size == ImageSize{.width_px = image.width_px, .height_px = image.height_px};
}

std::string size_text(const ImageSize& size) {
  return fmt::format("{} x {}", size.width_px, size.height_px);
}

bool is_jpeg_name(const std::string& path) {
  const std::string ending = fs::path(path).extension().string();
  return ending == ".jpg" || ending == ".jpeg" || ending == ".JPG" || ending == ".JPEG";
}

}  // namespace

std::optional<UsableImage> ImageChooser::leave_out(const ForeignImage& image,
                                                   const std::string& note,
                                                   const std::string& problem) {
  ++written_.notes["left out: " + note];
  last_problem_ = fmt::format("{}: {}", image.path, problem);
  if (written_.examples.size() < kMaxExamples) written_.examples.push_back(last_problem_);
  return std::nullopt;
}

std::optional<UsableImage> ImageChooser::choose(const ForeignImage& image) {
  constexpr const char* kUnreadable = "images that cannot be read";
  if (!is_valid_utf8(image.path)) return leave_out(image, kUnreadable, "its name is not UTF-8");
  StoredImage stored;
  try {
    stored = read_stored_image(image.path);
    if (!stored.is_upright()) return choose_rotated(image, stored);
  } catch (const OutOfResources&) {
    throw;
  } catch (const UserError& error) {
    std::error_code ignored;
    num_missing_ += !fs::exists(image.path, ignored);
    return leave_out(image, kUnreadable, error.problems().front().error);
  }
  if (has_annotated_size(image, stored.size))
    return UsableImage{.path = image.path, .size = stored.size};
  return leave_out(image, "images whose size differs from the annotation",
                   fmt::format("it is {}, the annotation says {} x {}", size_text(stored.size),
                               image.width_px, image.height_px));
}

std::optional<UsableImage> ImageChooser::choose_rotated(const ForeignImage& image,
                                                        const StoredImage& stored) {
  const ImageSize size = stored.upright_size();
  if (!has_annotated_size(image, size)) {
    if (has_annotated_size(image, stored.size))
      return leave_out(image, "photos annotated in stored, not in EXIF orientation",
                       "EXIF rotates it, its annotation does not: remove the tag with "
                       "exiftool -Orientation= -n FILE");
    return leave_out(image, "images whose size differs from the annotation",
                     fmt::format("viewers show it as {}, the annotation says {} x {}",
                                 size_text(size), image.width_px, image.height_px));
  }
  if (!options_.upright) {
    ++num_rotated_;
    return leave_out(image, "photos stored rotated (EXIF): --upright writes upright copies",
                     fmt::format("it is stored rotated (EXIF orientation {})", stored.orientation));
  }
  load_upright(image.path);  // finds damaged images before anything is written
  copies_.push_back({.source = image.path, .path = new_copy_name(image.path)});
  ++written_.notes["upright copies of photos stored rotated (EXIF)"];
  return UsableImage{.path = copies_.back().path, .size = size};
}

std::string ImageChooser::new_copy_name(const std::string& source) {
  const std::string stem = fs::path(source).stem().string(),
                    ending = is_jpeg_name(source) ? ".jpg" : ".png";
  std::string name = stem + ending;
  for (int i = 2; !copy_names_.insert(name).second; ++i)
    name = fmt::format("{}_{}{}", stem, i, ending);
  return join_path(directory_, name);
}

void ImageChooser::refuse_split(const std::vector<ForeignImage>& images,
                                const std::string& jsonl) const {
  const auto num_images = static_cast<int64_t>(images.size());
  Problem problem{.error = "no image of this split can be used",
                  .where = jsonl,
                  .what = last_problem_,
                  .fix =
                      "correct the images or their annotations, or remove this split; "
                      "nothing has been written"};
  if (images.empty()) {
    problem.what = "it has no image with box annotations";
    problem.fix = "remove this split; nothing has been written";
  } else if (num_missing_ == num_images) {
    const fs::path first(images.front().path);
    const bool is_given = !options_.images_dir.empty();
    const std::string folder = first.parent_path().string();
    const std::string place = is_given ? "--images " + shell_word(options_.images_dir)
                                       : shell_word(folder.empty() ? "." : folder);
    problem.where = fmt::format("{} (for {})", place, jsonl);
    problem.what = fmt::format("none of {} exists, e.g. {}", counted(num_images, "image"),
                               is_given ? first.lexically_relative(options_.images_dir).string()
                                        : first.filename().string());
    problem.fix = fmt::format("pass the directory of {} with --images; nothing has been written",
                              is_given ? "them" : first.filename().string());
  } else if (num_rotated_ == num_images) {
    problem.what = fmt::format(
        "{}; annotations fit the rotated view, training reads the stored pixels", last_problem_);
    problem.fix = "add --upright, which writes upright copies; nothing has been written";
  }
  throw UserError(ErrorKind::kData, problem);
}

void write_copies(const std::vector<TurnedCopy>& copies) {
  for (const auto& [source, path] : copies) {
    const Image picture = load_upright(source);
    make_directories(fs::path(path).parent_path().string());
    write_file_atomic(
        path, is_jpeg_name(path) ? encode_jpeg(picture, kCopyQuality) : encode_png(picture));
  }
}

}  // namespace rematch
