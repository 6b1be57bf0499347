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

/// The ranks of a run. Every rank calls the same functions in the same order. Sums are added in
/// rank order, so every rank gets the same bits. A call that cannot be finished because another
/// rank is gone throws UserError (environment), which names the rank if it is known.
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
  // Synchronous calls: every rank is in them at once. Inside a phase (ranks/phase.h) they end with
  // an internal exception when another rank has failed, so none waits for a rank that never comes.

  /// Replaces each value by its sum over the ranks. The spans have the same size on every rank.
  void all_reduce(std::span<double> values) { check_peers(), sum(values); }
  void all_reduce(std::span<int64_t> values) { check_peers(), sum(values); }
  /// The bytes of every rank, by rank, on every rank. Each may have its own length.
  std::vector<std::string> all_gather(std::string bytes) {
    return check_peers(), collect(std::move(bytes));
  }
  /// The bytes of rank 0, on every rank.
  std::string broadcast(std::string bytes) { return check_peers(), copy(std::move(bytes)); }
  /// Replaces `values` by those of `root`. Shape and dtype are the same on every rank.
  void broadcast(at::Tensor& values, int root) { check_peers(), copy(values, root); }
  /// Returns when every rank has called it.
  void barrier();

  // Asynchronous calls: once a rank has started one, every rank must start it, whatever happens.

  /// Starts broadcast() for a contiguous tensor on message_device(), which stays as it is until the
  /// returned function, which waits, has returned. Several may be in flight; they are waited for in
  /// the order in which they were started.
  [[nodiscard]] virtual std::function<void()> start_broadcast(const at::Tensor& values,
                                                              int root) = 0;
  /// Starts sending `send` to all ranks: send_counts[r] values to rank r, concatenated in rank
  /// order; `receive` has the same layout. Both are flat tensors of one dtype on message_device(),
  /// and stay as they are until the returned function, which waits, has returned.
  [[nodiscard]] virtual std::function<void()> exchange(
      const at::Tensor& send, const std::vector<int64_t>& send_counts, const at::Tensor& receive,
      const std::vector<int64_t>& receive_counts) = 0;
  /// Call it when this rank cannot complete an asynchronous call that it began: its further
  /// synchronous calls fail at once, so it ends and the others see its connection close.
  void leave() { has_left_ = true; }

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
  /// Phases and calls so far; it stops growing while a rank computes, or is stuck.
  int64_t num_moves() const { return num_moves_; }
  /// True inside a call that waits for other ranks.
  bool is_waiting() const { return is_waiting_; }
  /// Seconds that this rank has waited in calls of this object since the last call of this
  /// function.
  double take_wait_s() { return std::exchange(wait_s_, 0.0); }

 protected:
  // The synchronous calls themselves.
  virtual void sum(std::span<double> values) = 0;
  virtual void sum(std::span<int64_t> values) = 0;
  virtual std::vector<std::string> collect(std::string bytes) = 0;
  virtual std::string copy(std::string bytes) = 0;
  virtual void copy(at::Tensor& values, int root) = 0;

  /// Around every call that waits.
  void begin_wait() { is_waiting_ = true; }
  void end_wait(double seconds) {
    is_waiting_ = false;
    ++num_moves_;
    wait_s_ += seconds;
  }

 private:
  friend class PhaseScope;
  /// Exchanges one integer. @throws PeerStopped when another rank has failed in this phase
  void check_peers();
  /// @return ranks that have failed. @param has_failed  this one has
  int64_t count_failed(bool has_failed);

  bool is_in_phase_ = false;
  bool has_left_ = false;
  double wait_s_ = 0;
  std::atomic<const char*> phase_ = "start";
  std::atomic<int64_t> num_moves_ = 0;
  std::atomic<bool> is_waiting_ = false;
};

/// The group of a process that trains alone. One for the whole program; it holds no state.
Group& alone();

}  // namespace rematch
