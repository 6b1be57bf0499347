#include "model/finite_weights.h"

#include <fmt/core.h>

#include <string>

#include "base/error.h"

namespace rematch {

void check_finite_weights(const std::vector<NamedParameter>& parameters) {
  const at::NoGradGuard no_grad;
  std::string first;
  int64_t num_values = 0;
  size_t num_bad = 0;
  for (const NamedParameter& parameter : parameters) {
    if (at::isfinite(parameter.tensor).all().item<bool>()) continue;
    if (num_bad++ > 0) continue;
    first = parameter.name;
    num_values = at::isfinite(parameter.tensor).logical_not().sum().item<int64_t>();
  }
  if (num_bad == 0) return;
  throw data_error(
      {.error = "the weights are not finite; they are not saved",
       .where = first,
       .what =
           fmt::format("{} of its values are NaN or infinite, as are values of {} of {} parameters",
                       num_values, num_bad, parameters.size()),
       .fix = "resume from an earlier checkpoint with a lower training.learning_rate "
              "or max_grad_norm, a higher training.adam_epsilon, or "
              "model.torch_dtype: float32"});
}

}  // namespace rematch
