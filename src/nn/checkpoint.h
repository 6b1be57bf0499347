#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <vector>

namespace rematch {

/// A part of a network: a pure function of its inputs and of parameters it knows.
using Block = std::function<at::Tensor(const std::vector<at::Tensor>& inputs)>;

/// Runs `block` and keeps only its inputs: what it saves for its gradient is dropped and recomputed
/// in the backward pass. Gradients equal those of a plain call bit for bit, whether parameters are
/// frozen or not; nothing is kept where nothing needs a gradient. Everything that `block` refers to
/// must live, unchanged, until the backward pass is done. The result can be differentiated once per
/// forward pass kept, first order only. Cost: one more forward pass. Memory: one block's
/// activations at a time, forward and backward.
at::Tensor checkpointed(const Block& block, const std::vector<at::Tensor>& inputs);

}  // namespace rematch
