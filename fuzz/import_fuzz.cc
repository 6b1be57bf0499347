// Foreign bytes as an annotation file next to a real image: what is converted loads as records; all
// else is a UserError. The first byte chooses the format, whether outlines are kept, and whether
// objects that cannot be read are dropped.
#include <unistd.h>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/error.h"
#include "learn/data/dataset.h"
#include "tools/import/foreign.h"

namespace {

namespace fs = std::filesystem;

/// A reader, what it is given, and where its annotation file lies in the data set.
struct Format {
  const char *source, *annotation;
  rematch::ForeignSet (*read)(const rematch::Strings& sources, const rematch::ImportOptions&);
};

const Format kFormats[] = {
    {"train.json", "train.json", rematch::read_coco_files},
    {"", "a.xml", rematch::read_voc_dir},
    {"", "a.json", rematch::read_labelme_dir},
    {"", "labels/a.txt", rematch::read_yolo_set},
    {"train.jsonl", "train.jsonl", rematch::read_chat_files},
    {"train.csv", "train.csv", rematch::read_csv_files},
    {"metadata.jsonl", "metadata.jsonl", rematch::read_hf_files},
};

void write(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

/// The directory of all data sets; removed at the end of the process.
const fs::path& root() {
  static const struct Root {
    fs::path path = fs::path(fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path()) /
                    ("rematch_import_fuzz_" + std::to_string(getpid()));
    ~Root() { fs::remove_all(path); }
  } root;
  return root.path;
}

/// Makes the data set of a format without its annotation file.
std::string make_directory(size_t format) {
  const fs::path dir = root() / std::to_string(format);
  const bool is_yolo = std::string_view(kFormats[format].annotation) == "labels/a.txt";
  fs::create_directories(dir / "images");
  fs::copy_file(REMATCH_SOURCE_DIR "/tests/golden/vision_images/png_rgb.png",
                dir / (is_yolo ? "images/a.png" : "a.png"), fs::copy_options::overwrite_existing);
  if (is_yolo) write(dir / "data.yaml", "train: images\nnames: [cat, dog]\n");
  return dir.string();
}

void convert(size_t format, std::string_view text, bool polygons, bool drops) {
  static std::string directories[std::size(kFormats)];
  std::string& dir = directories[format];
  if (dir.empty()) dir = make_directory(format);
  write(fs::path(dir) / kFormats[format].annotation, text);
  const std::string source = (fs::path(dir) / kFormats[format].source).string();
  const rematch::ImportOptions options{.polygons = polygons,
                                       .split = "train",
                                       .label = drops ? "thing" : "",
                                       .drop_unreadable = drops};
  try {
    const rematch::WrittenSet written =
        rematch::write_records(kFormats[format].read({source}, options), dir + "/out");
    for (const rematch::WrittenSplit& split : written.splits) {
      const rematch::Dataset records = rematch::Dataset::load(split.path, {});
      REMATCH_CHECK(static_cast<int64_t>(records.samples().size()) == split.num_images, text);
    }
  } catch (const rematch::UserError& error) {
    REMATCH_CHECK(error.kind() != rematch::ErrorKind::kBug, error.what());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t choice = data[0] / std::size(kFormats);
  convert(data[0] % std::size(kFormats), text, /*polygons=*/choice % 2 == 1,
          /*drops=*/choice / 2 % 2 == 1);
  return 0;
}
