#include "learn/train/cadence.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace rematch {

Cadence::Cadence(const CadenceSettings& options, EpochSteps epoch_steps)
    : options_(options), epoch_steps_(std::move(epoch_steps)), total_steps_(options.max_steps) {
  if (options.max_steps > 0) return;
  const auto whole_epochs = static_cast<int64_t>(std::floor(options.num_train_epochs));
  total_steps_ = 0;
  for (int64_t epoch = 0; epoch < whole_epochs; ++epoch) total_steps_ += steps_in(epoch);
  if (options.num_train_epochs > whole_epochs) {
    // Multiply first, then subtract the whole epochs: 2.1 epochs of 10 steps are 21 steps, but
    // 2.1 - 2 is slightly more than 0.1 in floating point.
    const int64_t steps = steps_in(whole_epochs);
    total_steps_ +=
        static_cast<int64_t>(std::ceil(options.num_train_epochs * steps)) - whole_epochs * steps;
  }
  total_steps_ = std::max<int64_t>(1, total_steps_);
}

int64_t Cadence::steps_in(int64_t epoch) const {
  const int64_t steps = epoch_steps_(epoch);
  REMATCH_CHECK(steps >= 1);
  return steps;
}

double Cadence::epoch_at(int64_t step) const {
  if (step <= 0) return 0.0;
  while (epoch_ends_.empty() || epoch_ends_.back() < step) {
    const auto epoch = std::ssize(epoch_ends_);
    epoch_ends_.push_back((epoch == 0 ? 0 : epoch_ends_.back()) + steps_in(epoch));
  }
  const auto epoch = std::ranges::lower_bound(epoch_ends_, step) - epoch_ends_.begin();
  const int64_t start = epoch == 0 ? 0 : epoch_ends_[epoch - 1];
  const int64_t steps = epoch_ends_[epoch] - start;
  // A single division keeps the result exact at the end of an epoch.
  return static_cast<double>(epoch * steps + (step - start)) / steps;
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
  due.evaluate = (options_.eval_when == When::kSteps && hits(options_.eval_steps)) ||
                 (options_.eval_when == When::kEpoch && epoch_over);
  due.save = (options_.save_when == When::kSteps && hits(options_.save_steps)) ||
             (options_.save_when == When::kEpoch && epoch_over);
  due.save = due.save && may_save(step);
  if (due.stop && options_.save_last_epoch) due.save = true;
  return due;
}

}  // namespace rematch
