#include "program/assembly/sample_pixels.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "learn/data/bad_sample.h"

namespace rematch {
namespace {

/// The first record with an image; null when there is none.
const Sample* find_record(const std::string& image_path, const std::optional<Dataset>& data) {
  if (!data) return nullptr;
  for (const Sample& sample : data->samples()) {
    if (std::find(sample.image_paths.begin(), sample.image_paths.end(), image_path) !=
        sample.image_paths.end())
      return &sample;
  }
  return nullptr;
}

}  // namespace

PixelGetter sample_pixels(PixelStore& store, const std::optional<Dataset>& train_data,
                          const std::optional<Dataset>& val_data) {
  return [&store, &train_data, &val_data](const ImageRef& image) {
    try {
      return store.get(image);
    } catch (const UserError& error) {
      const Sample* const trained = find_record(image.path, train_data);
      const Sample* const record = trained != nullptr ? trained : find_record(image.path, val_data);
      std::vector<Problem> problems = error.problems();
      for (Problem& problem : problems) {
        if (record != nullptr) problem.where += fmt::format(" ({})", record->where);
        problem.fix += trained != nullptr
                           ? "; a resumed run needs the same records: restore the file, "
                             "or add --resume --set data.on_bad_sample=skip"
                           : "; then resume";
      }
      throw BadSample(error.kind(), std::move(problems));
    }
  };
}

}  // namespace rematch
