#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "settings/train_file.h"

namespace rematch {

/// One file of a data set: samples begin..end-1.
struct MixturePart {
  std::string path;
  int64_t begin = 0, end = 0;  ///< indices of samples
  double weight = 1;           ///< > 0

  int64_t num_records() const { return end - begin; }
  /// Records that an epoch takes: weight × records, rounded to the nearest integer, halves up.
  int64_t num_drawn() const;
};

/// Records that an epoch takes of all parts.
int64_t mixture_size(const std::vector<MixturePart>& parts);

/// The sample indices of an epoch, part by part: each part whole as often as its weight allows, and
/// of the rest a choice that (seed, epoch) draws without repetition. Depends on its arguments only.
std::vector<int64_t> draw_mixture(const std::vector<MixturePart>& parts, uint64_t seed,
                                  int64_t epoch);

/// Checks that no file is listed twice, by another spelling or through a link. A file that does not
/// exist is left to its reader. @throws UserError (config) naming all repetitions
void check_train_files(const std::vector<TrainFile>& files);

}  // namespace rematch
