// The only file that needs the headers of CUDA and NCCL: librematch_nccl.so.
#define USE_C10D_NCCL 1
#define USE_CUDA 1
#include "engine/ranks/nccl_group.h"

#include <ATen/cuda/CUDAContext.h>
#include <fmt/core.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "engine/ranks/nccl_plugin.h"
#include "engine/ranks/store.h"
#include "engine/ranks/stream_waits.h"

namespace rematch {
namespace {

using Clock = std::chrono::steady_clock;

/// Identifies the card itself: ranks that see one GPU each all number it 0.
std::string gpu_uuid(const at::Device& device) {
  std::string text = "GPU-";
  for (const char byte : at::cuda::getDeviceProperties(device.index())->uuid.bytes)
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

class NcclGroup : public Group {
 private:
  /// @param is_idle  the host's time is spent for other ranks, not for the device's own work
  template <typename Call>
  auto with_wait(Call&& call, bool is_idle = true) {
    const auto start = Clock::now();
    host_group_->enter(phase());  // for the errors of Gloo
    begin_wait();
    struct End {
      NcclGroup& group;
      Clock::time_point start;
      bool is_idle;
      ~End() {
        const std::chrono::duration<double> on_host = Clock::now() - start;
        group.end_wait((is_idle ? on_host.count() : 0) + group.stream_waits_.take_s());
      }
    } end{*this, start, is_idle};
    return call();
  }

  template <typename Call>
  void guard(Call&& call, bool is_idle = true) {
    const auto guarded = [&] {
      try {
        call();
      } catch (const std::exception& error) {
        throw environment_error({.error = "NCCL cannot reach another rank's GPU",
                                 .where = fmt::format("rank {} of {} on {}, in the phase {}",
                                                      rank(), size(), device_.str(), phase()),
                                 .what = first_line(error.what()),
                                 .fix = "look at that rank's own messages, set NCCL_DEBUG=INFO, or "
                                        "`training.ddp_backend: gloo`"});
      }
    };
    with_wait(guarded, is_idle);
  }

 public:
  NcclGroup(std::unique_ptr<Group> host_group, c10::intrusive_ptr<c10d::Store> store,
            at::Device device, std::chrono::seconds timeout)
      : host_group_(std::move(host_group)), device_(device), stream_waits_(device) {
    auto options = c10d::ProcessGroupNCCL::Options::create(/*is_high_priority_stream=*/true);
    options->timeout = timeout;
    options->group_name = "rematch:gradients";
    for (int rank = 0; rank < size(); ++rank) options->global_ranks_in_group.push_back(rank);
    guard([&] {
      nccl_ = c10::make_intrusive<c10d::ProcessGroupNCCL>(
          c10::make_intrusive<c10d::PrefixStore>("nccl", std::move(store)), rank(), size(),
          options);
      nccl_->setBoundDeviceId(device);
      nccl_->eagerConnectSingleDevice(device);
    });
  }
  ~NcclGroup() override {
    try {
      nccl_->shutdown();
    } catch (const std::exception&) {  // another rank is gone
    }
  }

  int rank() const override { return host_group_->rank(); }
  int size() const override { return host_group_->size(); }
  at::Device message_device() const override { return device_; }

  /// Subgroups exchange host memory only.
  std::unique_ptr<Group> split(int size) override { return host_group_->split(size); }
  std::function<void()> start_broadcast(const at::Tensor& values, int root) override {
    if (values.device() != device_) {
      return with_wait([&] { return host_group_->start_broadcast(values, root); });
    }
    c10::intrusive_ptr<c10d::Work> work;
    guard([&] {
      std::vector<at::Tensor> tensors{values};
      c10d::BroadcastOptions from;
      from.rootRank = root;
      work = nccl_->broadcast(tensors, from);
    });
    return [this, work] { guard([&] { stream_waits_.add([&] { work->wait(); }); }); };
  }

  std::function<void()> exchange(const at::Tensor& send, const std::vector<int64_t>& send_counts,
                                 const at::Tensor& receive,
                                 const std::vector<int64_t>& receive_counts) override {
    if (send.device() != device_) {
      return with_wait(
          [&] { return host_group_->exchange(send, send_counts, receive, receive_counts); });
    }
    c10::intrusive_ptr<c10d::Work> work;
    guard([&] {
      at::Tensor from = send, to = receive;
      std::vector<int64_t> from_counts = send_counts, to_counts = receive_counts;
      work = nccl_->alltoall_base(to, from, to_counts, from_counts);
    });
    return [this, work] { guard([&] { stream_waits_.add([&] { work->wait(); }); }); };
  }
  void drain() override {
    guard([&] { stream_waits_.drain(); }, /*is_idle=*/false);
  }

 protected:
  void sum(std::span<double> values) override {
    with_wait([&] { host_group_->all_reduce(values); });
  }
  void sum(std::span<int64_t> values) override {
    with_wait([&] { host_group_->all_reduce(values); });
  }
  Strings collect(std::string bytes) override {
    return with_wait([&] { return host_group_->all_gather(std::move(bytes)); });
  }
  std::string copy(std::string bytes) override {
    return with_wait([&] { return host_group_->broadcast(std::move(bytes)); });
  }
  void copy(at::Tensor& values, int root) override {
    if (values.device() != device_ || !values.is_contiguous())
      return with_wait([&] { host_group_->broadcast(values, root); });
    start_broadcast(values, root)();
  }

 private:
  std::unique_ptr<Group> host_group_;
  at::Device device_;
  StreamWaits stream_waits_;
  c10::intrusive_ptr<c10d::ProcessGroupNCCL> nccl_;
};

}  // namespace

}  // namespace rematch

extern "C" {

int rematch_nccl_plugin_abi() { return rematch::kNcclPluginAbi; }

void rematch_nccl_plugin_make(rematch::NcclGroupParts parts,
                              std::unique_ptr<rematch::Group>& group) {
  rematch::require_own_gpus(*parts.host_group, rematch::gpu_uuid(parts.device));
  group = std::make_unique<rematch::NcclGroup>(std::move(parts.host_group), std::move(parts.store),
                                               parts.device, parts.timeout);
}
}
