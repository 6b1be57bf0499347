// config.json and preprocessor_config.json of a model, with a zero byte between them: errors for
// the user, or a pair that fits, whose patches are what the vision tower reads.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "model/families/family.h"
#include "model/patch_fit.h"
#include "model/vision/image.h"
#include "model/vision/patches.h"

namespace {

// A directory of this process, in memory where that is possible.
struct OwnDirectory {
  std::string path =
      (std::filesystem::exists("/dev/shm") ? "/dev/shm/rematch-fuzz-" : "/tmp/rematch-fuzz-") +
      std::to_string(::getpid());
  OwnDirectory() { rematch::make_directories(path); }
  ~OwnDirectory() { std::filesystem::remove_all(path); }
};

const std::string& directory() {
  static const OwnDirectory kDirectory;
  return kDirectory.path;
}

void write(const char* name, std::string_view text) {
  rematch::FileWriter writer(directory() + "/" + name);
  writer.write(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t cut = std::min(text.find('\0'), text.size());
  write("config.json", text.substr(0, cut));
  write("preprocessor_config.json", text.substr(std::min(cut + 1, text.size())));
  try {
    const rematch::ModelDescription model = rematch::describe_model(directory());
    rematch::PatchOptions options = rematch::PatchOptions::from_model_dir(directory());
    // one token is what is cut here, whatever size the processor would make of it
    options.do_resize = false;
    rematch::check_patches_fit(options, model.vision, directory());
    const int side = options.side_multiple_px();
    if (side > 256 || options.temporal_patch_size > 8) return 0;  // legal, and slow
    rematch::Image image{.width_px = side, .height_px = side, .rgb = {}};
    image.rgb.resize(static_cast<size_t>(side) * static_cast<size_t>(side) * 3);
    const rematch::Patches patches = rematch::patchify(image, options, "fuzz");
    REMATCH_CHECK(patches.row_width == model.vision.patch_width());
    REMATCH_CHECK(model.vision.num_tokens(patches.grid_thw) == 1);
  } catch (const rematch::UserError&) {
  }
  return 0;
}
