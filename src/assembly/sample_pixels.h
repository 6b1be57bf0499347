#pragma once
#include <optional>

#include "data/dataset.h"
#include "model/row.h"
#include "vision/pixel_store.h"

namespace rematch {

/// The pixels of samples, from `store`. Its errors become BadSample: they name the record of the
/// image and how the run goes on. All arguments outlive the result.
PixelGetter sample_pixels(PixelStore& store, const std::optional<Dataset>& train_data,
                          const std::optional<Dataset>& val_data);

}  // namespace rematch
