#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "model/nn/results.h"

namespace rematch {

/// A part of a network: a pure function of its inputs and of the parameters it captures.
using Block = std::function<at::Tensor(const std::vector<at::Tensor>& inputs)>;

/// A block with several results that knows its pass: the backward pass does not read them.
using TwoPassBlock =
    std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& inputs, Results results)>;

/// Runs `block` and keeps only its inputs; the backward pass recomputes its activations. Gradients
/// are bit-identical to those of a plain call, for frozen and trained parameters. Keeps nothing if
/// nothing needs a gradient. Everything that `block` refers to must stay alive and unchanged until
/// the end of the backward pass. A result can be differentiated once, first order only. Cost: one
/// more forward pass. Memory: the activations of one block at a time, forward and backward.
at::Tensor run_checkpointed(const Block& block, const std::vector<at::Tensor>& inputs);
std::vector<at::Tensor> run_checkpointed(const TwoPassBlock& block,
                                         const std::vector<at::Tensor>& inputs);

}  // namespace rematch
