#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "learn/mstep/loss/losses.h"
#include "learn/mstep/optim/adamw.h"

namespace rematch {

/// The loss of a trained row, for the log.
struct ScaledLoss {
  std::map<std::string, double> scaled;  ///< contribution to the step's loss, by kind of target
  NamedSums details;

  friend void fields(auto& wire, ScaledLoss& loss) { wire(loss.scaled, loss.details); }
};

/// The collective work of a step: sums the gradients of all rows into the parameters' .grad, and
/// gives every process the updated values.
///
/// A step is begin(), then a backward pass and end_row() for each row, finish() and update().
/// Between begin() and finish() there are no other collective calls. A step runs inside one phase
/// (engine/ranks/phase.h): if a process fails, all leave the step, each by discard().
class GradientSum {
 public:
  virtual ~GradientSum() = default;

  /// The parameters that this process's optimizer updates.
  virtual std::vector<ParameterGroup> updated_groups() const = 0;
  /// The parameters owned by this process, which saves their optimizer state. Each has one owner.
  virtual std::vector<ParameterGroup> owned_groups() const = 0;
  /// Index of this process's row `row` in the window of all processes.
  virtual int64_t window_index(int64_t row) const = 0;

  /// Replaces each value by its sum over all processes.
  virtual void sum_counts(std::span<double> counts) = 0;
  /// Starts a step. If it throws, it throws in all processes.
  /// @param is_trained  for each row of this process: true if it gets a backward pass
  virtual void begin(const std::vector<bool>& is_trained) = 0;
  /// Ends a row, trained or not.
  virtual void end_row() = 0;
  /// Completes the sums in the .grad of owned parameters and clips them by the norm over all
  /// parameters, as clip_grad_norm() does. Returns that norm, the same in every process.
  virtual double finish(double max_norm) = 0;
  /// Runs `step`, which updates the parameters of updated_groups() from their .grad, and gives
  /// every process the new values of all parameters.
  virtual void update(const std::function<void()>& step) = 0;
  /// Drops all gradients. In the middle of a step it first completes every transfer that other
  /// processes are waiting for. Does not throw.
  virtual void discard() = 0;

  /// The losses of all processes' rows in window order, in the process that logs; else nullopt.
  virtual std::optional<std::vector<ScaledLoss>> gather_losses(std::vector<ScaledLoss> own) = 0;
};

}  // namespace rematch
