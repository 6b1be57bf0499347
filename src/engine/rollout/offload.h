#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/settings/pack.h"

namespace rematch {

/// Moves bytes between device and host memory. The real one is make_tensor_mover(); tests record
/// moves or let them fail.
class TensorMover {
 public:
  virtual ~TensorMover() = default;
  /// True if the tensor is in device memory. (On a CPU all tensors are in host memory.)
  virtual bool is_on_device(const at::Tensor& tensor) const = 0;
  /// A copy in host memory: same values, dtype, sizes and strides, separate storage.
  /// @throws c10::Error, std::bad_alloc
  virtual at::Tensor to_host(const at::Tensor& tensor) = 0;
  /// A copy on `device` of a result of to_host().
  /// @throws c10::Error when device memory is insufficient
  virtual at::Tensor to_device(const at::Tensor& tensor, const at::Device& device) = 0;
  /// Frees memory that a device's allocator has cached.
  virtual void release_cached(const at::Device& device) = 0;
};

/// Uses page-locked host memory if available and blocking copies.
std::unique_ptr<TensorMover> make_tensor_mover();

/// Keeps training state in host memory while a rollout engine with its own weights starts, receives
/// the weights and generates (BEHAVIOUR 11). OffloadScope starts and ends this.
///
/// Moving a tensor replaces its data (at::Tensor::set_data), so its holders (model, optimizer, tied
/// head, autograd hooks) keep the same tensor. While offloaded it is an ordinary CPU tensor that
/// can be read for the sync and saved. Not thread-safe.
class Offload {
 public:
  using Tensors = std::function<std::vector<at::Tensor>()>;
  struct Options {
    OffloadSettings settings;
    /// called if state cannot be restored while an exception is pending; must not throw; may be
    /// empty
    std::function<void(const std::string&)> warn;
  };
  /// @param parameters  returns all parameters of the model; called for every scope. A tied matrix
  /// may appear twice
  Offload(Options options, Tensors parameters, std::unique_ptr<TensorMover> mover);

  /// From now on moves an optimizer too.
  /// @param tensors  returns its tensors; called for every scope
  void set_optimizer(Tensors tensors) { optimizer_ = std::move(tensors); }

 private:
  friend class OffloadScope;
  struct Offloaded {
    at::Tensor tensor;  ///< the live handle
    at::Device home;
  };
  void enter();
  void leave();
  std::vector<at::Tensor> tensors_to_move() const;
  void move_out(const std::vector<at::Tensor>& tensors);
  void move_back();

  Options options_;
  Tensors parameters_;
  Tensors optimizer_;  ///< empty: nothing is trained
  std::unique_ptr<TensorMover> mover_;
  std::vector<Offloaded> offloaded_;
  int depth_ = 0;  ///< open scopes; only the outermost moves tensors
};

/// The scope in which training state is in host memory. Nested scopes have no effect.
///
///     OffloadScope offload(maybe_null);
///     engine.sync_weights(…); engine.generate(…); engine.release();
///     offload.restore();
class OffloadScope {
 public:
  /// @param offload  null: no offload
  /// @throws UserError (environment) when host memory is insufficient, after moving everything back
  explicit OffloadScope(Offload* offload);
  /// Restores the state if an exception prevented restore(). A failure goes to Options::warn.
  ~OffloadScope();
  OffloadScope(const OffloadScope&) = delete;
  OffloadScope& operator=(const OffloadScope&) = delete;

  /// Restores everything; the regular end of the scope.
  /// @throws UserError (environment) when device memory is insufficient; the values stay in host
  /// memory, and the end of the next scope tries again
  void restore();

 private:
  Offload* offload_;
};

}  // namespace rematch
