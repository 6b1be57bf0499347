#pragma once
#include <ATen/ATen.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rematch {

/// The ranks of a run, as the parts that need each other's numbers see them. Every rank calls the
/// same functions in the same order. Sums are added in rank order, so that every rank gets the same
/// bits. A call that cannot be finished, because another rank is gone, throws UserError
/// (environment) that names the rank if it is known.
class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  bool is_alone() const { return size() == 1; }
  /// Where messages of tensors lie so that exchange() and broadcast() need no copy.
  virtual at::Device message_device() const { return at::kCPU; }
  /// What a rank of this group is called in the run: another number only in a part that split()
  /// made.
  virtual int run_rank(int rank) const { return rank; }
  /// Replaces each value by its sum over the ranks. The spans have the same size on every rank.
  virtual void all_reduce(std::span<double> values) = 0;
  virtual void all_reduce(std::span<int64_t> values) = 0;
  /// The bytes of every rank, by rank, on every rank. Each may have its own length.
  virtual std::vector<std::string> all_gather(std::string bytes) = 0;
  /// The bytes of rank 0, on every rank.
  virtual std::string broadcast(std::string bytes) = 0;
  /// Replaces `values` by those of `root`. Shape and dtype are the same on every rank.
  virtual void broadcast(at::Tensor& values, int root) = 0;
  /// Starts the same for a contiguous tensor on message_device(), which stays as it is until the
  /// returned function, which waits, has returned. Several may be on their way, and are waited for
  /// in the order in which they were started.
  [[nodiscard]] virtual std::function<void()> start_broadcast(const at::Tensor& values,
                                                              int root) = 0;
  /// Starts sending `send` to all ranks, send_counts[r] values to rank r, one behind the other, and
  /// fills `receive` likewise. Both are flat tensors of one dtype on message_device(), and stay as
  /// they are until the returned function, which waits, has returned.
  [[nodiscard]] virtual std::function<void()> exchange(
      const at::Tensor& send, const std::vector<int64_t>& send_counts, const at::Tensor& receive,
      const std::vector<int64_t>& receive_counts) = 0;
  /// Returns when every rank has called it.
  virtual void barrier() = 0;
  /// The part of this rank when the ranks are cut into parts of `size` neighbours, which divides
  /// their number: a group of its own. Every rank calls it.
  virtual std::unique_ptr<Group> split(int size);

  /// What this rank is doing, in a word that lives as long as the program: "rollout". The watchdog
  /// shows it.
  void enter(const char* phase) {
    phase_ = phase;
    ++num_moves_;
  }
  const char* phase() const { return phase_; }
  /// Phases and calls so far; it stands still while a rank computes, or is stuck.
  int64_t num_moves() const { return num_moves_; }
  /// True inside a call that waits for other ranks.
  bool is_waiting() const { return is_waiting_; }
  /// Seconds that this rank has waited in calls of this object since the last call of this
  /// function.
  double take_wait_s() { return std::exchange(wait_s_, 0.0); }

 protected:
  /// Around every call that waits.
  void begin_wait() { is_waiting_ = true; }
  void end_wait(double seconds) {
    is_waiting_ = false;
    ++num_moves_;
    wait_s_ += seconds;
  }

 private:
  double wait_s_ = 0;
  std::atomic<const char*> phase_ = "start";
  std::atomic<int64_t> num_moves_ = 0;
  std::atomic<bool> is_waiting_ = false;
};

/// The group of a process that trains alone. One for the whole program; it holds no state.
Group& alone();

}  // namespace rematch
