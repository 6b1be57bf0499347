#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/settings/train_file.h"

namespace rematch {

/// One file of a data set: samples begin..end-1.
struct MixturePart {
  std::string path;
  int64_t begin = 0, end = 0;  ///< indices of samples
  double weight = 1;           ///< > 0

  int64_t num_records() const { return end - begin; }
  /// Records per epoch: weight × records, rounded to the nearest integer, halves up.
  int64_t num_drawn() const;
};

/// Records per epoch, summed over all parts.
int64_t mixture_size(const std::vector<MixturePart>& parts);

/// Draws the sample indices of an epoch, part by part: a part is repeated floor(weight) times, and
/// (seed, epoch) selects the remaining records without repetition. Depends only on its arguments.
std::vector<int64_t> draw_mixture(const std::vector<MixturePart>& parts, uint64_t seed,
                                  int64_t epoch);

/// Checks that no file is listed twice, even under another spelling or through a link. Missing
/// files are skipped; the reader reports them.
/// @throws UserError (config) with all repetitions
void check_train_files(const std::vector<TrainFile>& files);

}  // namespace rematch
