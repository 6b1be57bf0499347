#pragma once
// The precompiled header of the torch layers: their sources have ATen's functions from it, so that
// headers need no more than ATen/core/Tensor.h. torch/torch.h is never included: it costs 20 s per
// file, these headers 8. custom_function.h is left out: its templates would be instantiated at the
// end of every file (0.7 s each), and few files need it.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <string>
#include <vector>
