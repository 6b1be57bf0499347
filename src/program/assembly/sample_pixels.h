#pragma once
#include <optional>

#include "learn/data/dataset.h"
#include "model/row.h"
#include "model/vision/pixel_store.h"

namespace rematch {

/// Returns a getter of the patches in `store`. It turns errors into BadSample, which names the
/// record of the image and says how to continue the run. All arguments must outlive the result.
PixelGetter sample_pixels(PixelStore& store, const std::optional<Dataset>& train_data,
                          const std::optional<Dataset>& val_data);

}  // namespace rematch
