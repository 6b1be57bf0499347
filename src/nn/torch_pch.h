#pragma once
// The one precompiled header of the torch layers. torch/torch.h is never included (20 s per file); these take 8.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <c10/core/GradMode.h>

#include <memory>
#include <string>
#include <vector>
