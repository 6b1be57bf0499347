#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/settings/augment.h"
#include "base/settings/train_file.h"

namespace rematch {

/// Augmentation to look at, and the seed that draws it.
struct AugmentChoice {
  AugmentSettings settings;
  uint64_t seed = 42;
  std::vector<std::string> files;           ///< that were read
  std::vector<TrainFile> train_files = {};  ///< of the configuration; else empty
  std::optional<int64_t> train_sample_limit = {};
};

/// Reads `--augment`: a configuration file (its `data.augment`, `custom.absent_classes`,
/// `training.seed` and files count), or values such as `hflip=0.5,crop=0.5,color=0.2`. Empty: off.
/// @throws UserError (config) as the keys of a configuration, or when nothing is switched on
AugmentChoice read_augment_choice(const std::string& text);

}  // namespace rematch
