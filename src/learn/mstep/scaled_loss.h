#pragma once
#include <map>
#include <string>

#include "learn/mstep/loss/losses.h"

namespace rematch {

/// The loss of a trained row, for the log.
struct ScaledLoss {
  std::map<std::string, double> scaled;  ///< contribution to the step's loss, by kind of target
  NamedSums details;

  template <typename Wire>
  friend void fields(Wire& wire, ScaledLoss& loss) {
    wire(loss.scaled, static_cast<std::map<std::string, LossSum>&>(loss.details));
  }
};

}  // namespace rematch
