#pragma once
#include <map>
#include <string>
#include <vector>

#include "ranks/group.h"
#include "mstep/loss/losses.h"

namespace rematch {

/// What is logged of a trained row.
struct ScaledLoss {
  std::map<std::string, double> scaled;  ///< its share of the step's loss, by kind of target
  NamedSums details;
};

/// The losses of all ranks' rows in the order of the window (row t of each rank in turn, then row t
/// + 1), on rank 0; nothing on the others. Sums over them have the bits of one process. @param
/// scales  as many as rows
std::vector<ScaledLoss> gather_losses(Group& group, const std::vector<RowLoss>& rows,
                                      const std::vector<LossScale>& scales);

}  // namespace rematch
