#pragma once
#include <ATen/core/grad_mode.h>

#include "base/interrupt.h"

namespace rematch {

/// Between two layers: throws Interrupted when the flag is set, unless the pass belongs to an
/// update, which ends before the run stops.
inline void check_interrupt() {
  if (!at::GradMode::is_enabled()) throw_if_interrupted();
}

}  // namespace rematch
