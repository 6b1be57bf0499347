#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "settings/pack.h"

namespace rematch {

/// How bytes get from the device to host memory and back. The real one is make_tensor_mover(); tests record moves or let them fail.
class TensorMover {
 public:
  virtual ~TensorMover() = default;
  /// True when a tensor takes device memory, which moving it would free. (On a CPU everything is in host memory already.)
  virtual bool is_on_device(const at::Tensor& tensor) const = 0;
  /// A copy in host memory: same values, dtype, sizes and strides, storage of its own. @throws c10::Error, std::bad_alloc
  virtual at::Tensor to_host(const at::Tensor& tensor) = 0;
  /// A copy on `device` of what to_host() gave. @throws c10::Error when the device's memory does not do
  virtual at::Tensor to_device(const at::Tensor& tensor, const at::Device& device) = 0;
  /// Gives memory that the allocator of a device keeps for later back to the device, so that others find it.
  virtual void release_cached(const at::Device& device) = 0;
};

/// Page-locked host memory where it can be had, blocking copies, the caching allocator emptied.
std::unique_ptr<TensorMover> make_tensor_mover();

/// Keeps training state in host memory while a rollout engine with weights of its own starts, takes the weights and generates
/// (BEHAVIOUR 11). OffloadScope says when; this class knows what and remembers where from.
///
/// A tensor moves by exchanging the data below it (at::Tensor::set_data), so whoever holds it — model, optimizer, tied head, autograd hooks —
/// holds the same tensor before, meanwhile and after. Meanwhile it is an ordinary CPU tensor: weights can be read for the sync and saved.
/// Not thread-safe.
class Offload {
 public:
  using Tensors = std::function<std::vector<at::Tensor>()>;
  struct Options {
    OffloadSettings settings;
    std::function<void(const std::string&)>
        warn;  ///< told when state could not return while an exception was on its way; must not throw; may be empty
  };
  /// @param parameters  all of the model's, asked at every scope; a tied matrix may be listed twice and moves once
  Offload(Options options, Tensors parameters, std::unique_ptr<TensorMover> mover);
  /// The optimizer's tensors, once there is one: the engine is made before it. @param optimizer  must stay callable as long as scopes open
  void set_optimizer(Tensors optimizer) { optimizer_ = std::move(optimizer); }

  /// Tensors that are in host memory now.
  int64_t num_offloaded() const { return static_cast<int64_t>(offloaded_.size()); }

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
  Tensors optimizer_;
  std::unique_ptr<TensorMover> mover_;
  std::vector<Offloaded> offloaded_;
  int depth_ = 0;  ///< open scopes; only the outermost moves
};

/// The stretch of code during which training state is away. Scopes inside a scope do nothing.
///
///     OffloadScope offload(maybe_null);
///     engine.sync_weights(…); engine.generate(…); engine.release();
///     offload.restore();
class OffloadScope {
 public:
  /// @param offload  null: nothing moves
  /// @throws UserError (environment) when host memory does not do; everything is back on its device then
  explicit OffloadScope(Offload* offload);
  /// Brings back what restore() was not reached for because of an exception. A failure of that goes to Options::warn.
  ~OffloadScope();
  OffloadScope(const OffloadScope&) = delete;
  OffloadScope& operator=(const OffloadScope&) = delete;

  /// Brings everything back; the end of the scope on the way without errors.
  /// @throws UserError (environment) when the device's memory does not do; the values stay safe in host memory, and the next scope's end tries again
  void restore();

 private:
  Offload* offload_;
};

}  // namespace rematch
