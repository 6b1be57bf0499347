#pragma once
#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace rematch {

/// The ranks of a run. Every rank calls the same functions in the same order. Sums are added in
/// rank order, so every rank gets the same bits. A call that fails because another rank is gone
/// throws UserError (environment), which names the rank if it is known.
class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  bool is_alone() const { return size() == 1; }
  /// The device on which exchange() and broadcast() need no copy of their tensors.
  virtual at::Device message_device() const { return at::kCPU; }
  /// Number in the run of a rank of this group; differs from `rank` only in a subgroup (split()).
  virtual int run_rank(int rank) const { return rank; }

  // Synchronous calls: all ranks are in them at the same time. Inside a phase
  // (engine/ranks/phase.h) they throw an internal exception when another rank has failed, so no
  // rank waits forever.

  /// Replaces each value by its sum over the ranks. The spans have the same size on every rank.
  void all_reduce(std::span<double> values) { check_peers(), sum(values); }
  void all_reduce(std::span<int64_t> values) { check_peers(), sum(values); }
  /// The bytes of all ranks, in rank order, on every rank. Lengths may differ.
  Strings all_gather(std::string bytes) { return check_peers(), collect(std::move(bytes)); }
  /// The bytes of rank 0, on every rank.
  std::string broadcast(std::string bytes) { return check_peers(), copy(std::move(bytes)); }
  /// Replaces `values` by those of `root`. Shape and dtype are the same on every rank.
  void broadcast(at::Tensor& values, int root) { check_peers(), copy(values, root); }
  /// Returns when every rank has called it.
  void barrier();

  // Asynchronous calls: once a rank has started one, every rank must start it, whatever happens.
  // They return a function that waits; the tensors must not change until it returns. On GPUs it
  // makes the current stream wait, and returns: work that is queued later finds the values.

  /// Starts broadcast() for a contiguous tensor on message_device(). Several may be in flight; wait
  /// for them in the order in which they were started.
  [[nodiscard]] virtual std::function<void()> start_broadcast(const at::Tensor& values,
                                                              int root) = 0;
  /// Starts sending `send` to all ranks: send_counts[r] values to rank r, concatenated in rank
  /// order; `receive` has the same layout. Both are flat tensors of one dtype on message_device().
  [[nodiscard]] virtual std::function<void()> exchange(
      const at::Tensor& send, const std::vector<int64_t>& send_counts, const at::Tensor& receive,
      const std::vector<int64_t>& receive_counts) = 0;
  /// Returns when the values of all asynchronous calls that were waited for are there: a rank that
  /// sends nothing is noticed here, and not wherever the host waits next.
  virtual void drain() {}
  /// Call it if this rank cannot complete an asynchronous call that it started: its further
  /// synchronous calls fail at once, so it ends and the others see its connection close.
  void leave() { has_left_ = true; }

  /// Splits the ranks into subgroups of `size` neighbours (`size` divides their number) and returns
  /// this rank's subgroup. Every rank calls it.
  virtual std::unique_ptr<Group> split(int size);

  /// Sets the phase that the watchdog shows for this rank.
  /// @param phase  static, e.g. "rollout"
  void enter(const char* phase) {
    phase_ = phase;
    ++num_moves_;
  }
  const char* phase() const { return phase_; }
  /// Phases and calls so far; does not grow while a rank computes or is stuck.
  int64_t num_moves() const { return num_moves_; }
  /// True inside a call that waits for other ranks.
  bool is_waiting() const { return is_waiting_; }
  /// Seconds that this rank has waited for others since the last call of this function.
  double take_wait_s() { return std::exchange(wait_s_, 0.0); }

 protected:
  virtual void sum(std::span<double> values) = 0;
  virtual void sum(std::span<int64_t> values) = 0;
  virtual Strings collect(std::string bytes) = 0;
  virtual std::string copy(std::string bytes) = 0;
  virtual void copy(at::Tensor& values, int root) = 0;

  // Around every call that waits.
  void begin_wait() { is_waiting_ = true; }
  void end_wait(double seconds) {
    is_waiting_ = false;
    ++num_moves_;
    wait_s_ += seconds;
  }

 private:
  friend class PhaseScope;
  /// Exchanges one integer.
  /// @throws PeerStopped when another rank has failed in this phase
  void check_peers();
  /// Number of ranks that have failed.
  /// @param has_failed  of this rank
  int64_t count_failed(bool has_failed);

  bool is_in_phase_ = false;
  bool has_left_ = false;
  double wait_s_ = 0;
  std::atomic<const char*> phase_ = "start";
  std::atomic<int64_t> num_moves_ = 0;
  std::atomic<bool> is_waiting_ = false;
};

/// The group of a single process. One object for the whole program; it has no state.
Group& alone();

}  // namespace rematch
