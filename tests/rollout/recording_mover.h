#pragma once
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/rollout/offload.h"

namespace rematch::test {

/// Events around a rollout, in order: "out" and "back" of training state (a run of moves is
/// one entry) among what others push.
struct Recording {
  std::vector<std::string> events;
  int num_out = 0;
  int num_back = 0;
  int num_cache_releases = 0;
  int fail_out_at = -1;   ///< this move to host memory fails, counted from 0
  int fail_back_at = -1;  ///< the same for moves back to the device

  /// Number of tensors that are in host memory.
  int num_away() const { return num_out - num_back; }
  void push(const std::string& event) {
    if (events.empty() || events.back() != event) events.push_back(event);
  }
};

/// Host memory is memory this class gave; everything else counts as the device. What was left
/// behind is spoilt, as freed memory would be: a view that still looks there reads NaN.
class RecordingMover : public TensorMover {
 public:
  explicit RecordingMover(std::shared_ptr<Recording> recording)
      : recording_(std::move(recording)) {}

  bool is_on_device(const at::Tensor& tensor) const override {
    return hosts_.count(tensor.data_ptr()) == 0;
  }
  at::Tensor to_host(const at::Tensor& tensor) override {
    TORCH_CHECK(recording_->num_out != recording_->fail_out_at, "no host memory left");
    recording_->push("out");
    ++recording_->num_out;
    at::Tensor host = copy_and_spoil(tensor);
    hosts_.insert(host.data_ptr());
    return host;
  }
  at::Tensor to_device(const at::Tensor& tensor, const at::Device& device) override {
    TORCH_CHECK(recording_->num_back != recording_->fail_back_at, "device out of memory");
    TORCH_CHECK(device.is_cpu());
    recording_->push("back");
    ++recording_->num_back;
    hosts_.erase(tensor.data_ptr());
    return copy_and_spoil(tensor);
  }
  void release_cached(const at::Device&) override { ++recording_->num_cache_releases; }

 private:
  static at::Tensor copy_and_spoil(const at::Tensor& tensor) {
    at::Tensor copy = tensor.detach().clone();
    tensor.variable_data().fill_(std::numeric_limits<float>::quiet_NaN());
    return copy;
  }

  std::shared_ptr<Recording> recording_;
  std::set<const void*> hosts_;
};

}  // namespace rematch::test
