#define USE_C10D_GLOO 1
#include "engine/ranks/gloo_group.h"

#include <fmt/core.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "base/error.h"
#include "base/host_memory.h"
#include "base/text.h"
#include "engine/ranks/meeting.h"
#include "engine/ranks/store.h"

namespace rematch {
namespace {

using Clock = std::chrono::steady_clock;

at::Tensor bytes_tensor(const std::string& bytes, int64_t size) {
  at::Tensor tensor = at::zeros({size}, at::kByte);
  std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

std::string bytes_at(const at::Tensor& tensor, int64_t begin, int64_t size) {
  return {static_cast<const char*>(tensor.const_data_ptr()) + begin, static_cast<size_t>(size)};
}

class GlooGroup : public Group {
 public:
  GlooGroup(c10::intrusive_ptr<c10d::Store> store, int rank, int size, GlooOptions options)
      : rank_(rank), size_(size), options_(std::move(options)), store_(std::move(store)) {
    auto settings = c10d::ProcessGroupGloo::Options::create(options_.timeout);
    try {
      settings->devices.push_back(device());
    } catch (const UserError&) {
      throw;
    } catch (const std::exception& error) {
      throw environment_error(
          {.error = "the ranks' network interface cannot be used",
           .where = "environment variable GLOO_SOCKET_IFNAME",
           .what = fmt::format("\"{}\": {}", options_.interface_name, first_line(error.what())),
           .fix = "set it to an interface that reaches the other hosts (`ip address` lists them)"});
    }
    guard(
        [&] { gloo_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store_, rank, size, settings); });
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int run_rank(int rank) const override { return options_.first_rank + rank; }

  std::function<void()> start_broadcast(const at::Tensor& values, int root) override {
    c10::intrusive_ptr<c10d::Work> work;
    guard([&] {
      std::vector<at::Tensor> tensors{values};
      c10d::BroadcastOptions from;
      from.rootRank = root;
      work = gloo_->broadcast(tensors, from);
    });
    return [this, work] { guard([&] { work->wait(); }); };
  }

  std::function<void()> exchange(const at::Tensor& send, const std::vector<int64_t>& send_counts,
                                 const at::Tensor& receive,
                                 const std::vector<int64_t>& receive_counts) override {
    c10::intrusive_ptr<c10d::Work> work;
    guard([&] {
      at::Tensor from = send, to = receive;
      std::vector<int64_t> from_counts = send_counts, to_counts = receive_counts;
      work = gloo_->alltoall_base(to, from, to_counts, from_counts);
    });
    return [this, work] { guard([&] { work->wait(); }); };
  }

  std::unique_ptr<Group> split(int size) override {
    REMATCH_CHECK(size >= 1 && size_ % size == 0);
    const int subgroup = rank_ / size;
    const std::string prefix = fmt::format("split{}/{}", num_splits_++, subgroup);
    if (size == 1) return Group::split(size);
    GlooOptions options = options_;
    options.first_rank = run_rank(subgroup * size);
    options.run_size = options_.run_size > 0 ? options_.run_size : size_;
    options.timeout = options_.subgroup_timeout;
    return std::make_unique<GlooGroup>(c10::make_intrusive<c10d::PrefixStore>(prefix, store_),
                                       rank_ % size, size, std::move(options));
  }

 protected:
  void sum(std::span<double> values) override { sum_as(values, at::kDouble); }
  void sum(std::span<int64_t> values) override { sum_as(values, at::kLong); }

  Strings collect(std::string bytes) override {
    std::vector<int64_t> sizes(static_cast<size_t>(size_), 0);
    sizes[rank_] = std::ssize(bytes);
    sum(sizes);
    const int64_t longest = std::max<int64_t>(1, *std::ranges::max_element(sizes));
    const at::Tensor all = gather(bytes_tensor(bytes, longest));
    Strings texts;
    for (int r = 0; r < size_; ++r) texts.push_back(bytes_at(all, r * longest, sizes[r]));
    return texts;
  }

  std::string copy(std::string bytes) override {
    at::Tensor size = at::full({1}, std::ssize(bytes), at::kLong);
    copy(size, 0);
    const auto count = size.item<int64_t>();
    at::Tensor content = rank_ == 0 ? bytes_tensor(bytes, count) : at::zeros({count}, at::kByte);
    if (count > 0) copy(content, 0);
    return bytes_at(content, 0, count);
  }

  void copy(at::Tensor& values, int root) override {
    const bool is_usable = values.is_cpu() && values.is_contiguous();
    at::Tensor host = is_usable ? values : values.cpu().contiguous();
    start_broadcast(host, root)();
    if (!is_usable) values.copy_(host);
  }

 private:
  std::shared_ptr<gloo::transport::Device> device() const {
    if (!options_.interface_name.empty())
      return c10d::ProcessGroupGloo::createDeviceForInterface(options_.interface_name);
    if (!options_.one_host) require_reachable_name();
    return options_.one_host ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                             : c10d::ProcessGroupGloo::createDefaultDevice();
  }

  // Gloo uses the interface of this host's name, and other hosts cannot connect to a loopback one.
  void require_reachable_name() const {
    if (!is_loopback(host_name())) return;
    throw environment_error(
        {.error = "other hosts cannot reach the ranks on this host",
         .where = fmt::format("rank {} of {} on {}", rank_, size_, host_name()),
         .what = fmt::format(
             "{} resolves to a loopback address, and LOCAL_WORLD_SIZE is less than WORLD_SIZE",
             host_name()),
         .fix = "set GLOO_SOCKET_IFNAME to an interface that reaches the other hosts (`ip address` "
                "lists them), or to lo and "
                "LOCAL_WORLD_SIZE to WORLD_SIZE when all ranks are on this host"});
  }

  /// Wraps every call that waits. Once a call has failed, this rank is out of step with the others:
  /// every further call fails at once, so the rank ends and the others see its connection close.
  template <typename Call>
  void guard(Call&& call) {
    if (failure_) std::rethrow_exception(failure_);
    const auto start = Clock::now();
    begin_wait();
    try {
      call();
    } catch (const std::exception& error) {
      end_wait(std::chrono::duration<double>(Clock::now() - start).count());
      failure_ = std::make_exception_ptr(lost_connection(error));
      std::rethrow_exception(failure_);
    }
    end_wait(std::chrono::duration<double>(Clock::now() - start).count());
  }

  UserError lost_connection(const std::exception& error) const {
    const std::string known = options_.explain ? options_.explain() : std::string();
    return environment_error(
        {.error = "the connection to another rank is lost",
         .where = fmt::format("rank {} of {}, in the phase {}", run_rank(rank_),
                              options_.run_size > 0 ? options_.run_size : size_, phase()),
         .what = known.empty() ? first_line(error.what()) : known,
         .fix = "look at that rank's own messages; training.resume_from_checkpoint: latest "
                "continues from the last checkpoint"});
  }

  /// Concatenated in rank order.
  at::Tensor gather(at::Tensor mine) {
    at::Tensor all = at::empty({size_ * mine.numel()}, mine.options());
    guard([&] { gloo_->_allgather_base(all, mine)->wait(); });
    return all;
  }

  template <typename Value>
  void sum_as(std::span<Value> values, at::ScalarType dtype) {
    if (values.empty()) return;
    const auto count = std::ssize(values);
    const at::Tensor all = gather(at::from_blob(values.data(), {count}, dtype).clone());
    const Value* parts = all.const_data_ptr<Value>();
    for (int64_t i = 0; i < count; ++i) {
      Value total = parts[i];
      for (int r = 1; r < size_; ++r) total += parts[r * count + i];
      values[i] = total;
    }
  }

  int rank_, size_;
  GlooOptions options_;
  c10::intrusive_ptr<c10d::Store> store_;
  int num_splits_ = 0;
  std::exception_ptr failure_;  ///< the first one
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;
};

}  // namespace

std::unique_ptr<Group> make_gloo_group(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                                       GlooOptions options) {
  return std::make_unique<GlooGroup>(std::move(store), rank, size, std::move(options));
}

}  // namespace rematch
