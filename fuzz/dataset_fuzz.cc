// Foreign bytes as a line of a data set: a legal sample or a data error, never anything else.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "learn/data/record.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const rematch::ForbiddenTexts kForbidden({"<|im_end|>", "<|coord_5|>"});
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  try {
    const rematch::Sample sample = rematch::read_record(line, {.where = "fuzz:1",
                                                               .directory = "d",
                                                               .require_single_image = true,
                                                               .forbidden = &kForbidden});
    REMATCH_CHECK(sample.width_px > 0 && sample.height_px > 0 && sample.image_paths.size() == 1,
                  "record");
    REMATCH_CHECK(sample.prompt.empty() || !rematch::python_strip(sample.prompt).empty(), "prompt");
    for (const rematch::SceneObject& object : sample.objects) {
      REMATCH_CHECK(
          rematch::is_valid_utf8(object.desc) && !rematch::python_strip(object.desc).empty(),
          "desc");
      const size_t num_bins = object.geometry.bins.size();
      const bool is_bbox = object.geometry.kind == rematch::GeometryKind::kBbox2d;
      REMATCH_CHECK(is_bbox ? num_bins == 4 : num_bins >= 6 && num_bins % 2 == 0, "geometry");
      for (const int bin : object.geometry.bins)
        REMATCH_CHECK(bin >= 0 && bin < rematch::kNumBins, "bin");
    }
  } catch (const rematch::UserError& error) {
    REMATCH_CHECK(error.kind() == rematch::ErrorKind::kData, error.what());
  }
  return 0;
}
