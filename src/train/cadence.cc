#include "train/cadence.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace rematch {

Cadence::Cadence(const CadenceOptions& options, int64_t steps_per_epoch) : options_(options), steps_per_epoch_(steps_per_epoch) {
  REMATCH_CHECK(steps_per_epoch >= 1, "an epoch needs a step");
  total_steps_ = options.max_steps > 0
                     ? options.max_steps
                     : std::max<int64_t>(1, static_cast<int64_t>(std::ceil(options.num_train_epochs * static_cast<double>(steps_per_epoch))));
}

bool Cadence::may_save(int64_t step) const {
  return step >= options_.save_delay_steps && epoch_at(step) >= options_.save_delay_epochs;
}

Due Cadence::after_step(int64_t step, bool ends_epoch) const {
  const auto hits = [step](int64_t every) { return every > 0 && step % every == 0; };
  Due due;
  due.stop = step >= total_steps_;
  due.log = hits(options_.logging_steps) || (options_.logging_first_step && step == 1) || due.stop;
  const bool epoch_over = ends_epoch || due.stop;
  due.evaluate = (options_.eval_when == When::kSteps && hits(options_.eval_steps)) || (options_.eval_when == When::kEpoch && epoch_over);
  due.save = (options_.save_when == When::kSteps && hits(options_.save_steps)) || (options_.save_when == When::kEpoch && epoch_over);
  due.save = due.save && may_save(step);
  if (due.stop && options_.save_last_epoch) due.save = true;
  return due;
}

}  // namespace rematch
