#include "model/nn/checkpoint.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "model/nn/layers.h"
#include "nn/memory_meter.h"

namespace rematch {
namespace {

constexpr int64_t kRows = 256, kWidth = 64, kInner = 256;

at::Tensor random_leaf(at::IntArrayRef shape, uint64_t seed) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return (at::randn(shape, generator, at::kFloat) / 8).requires_grad_();
}

// A stack of residual blocks as the towers have them.
struct Stack {
  explicit Stack(int num_layers) {
    for (int i = 0; i < num_layers; ++i) {
      const auto seed = static_cast<uint64_t>(10 * i);
      layers.push_back({random_leaf({kWidth}, seed), random_leaf({kInner, kWidth}, seed + 1),
                        random_leaf({kWidth, kInner}, seed + 2)});
    }
  }
  at::Tensor forward(at::Tensor hidden, bool checkpointing) const {
    for (const std::vector<at::Tensor>& layer : layers) {
      const Block block = [&layer](const std::vector<at::Tensor>& inputs) {
        const at::Tensor x = rms_norm(inputs[0], layer[0], 1e-6);
        return inputs[0] + at::linear(at::silu(at::linear(x, layer[1])), layer[2]);
      };
      hidden = checkpointing ? run_checkpointed(block, {hidden}) : block({hidden});
    }
    return hidden;
  }
  // Gradients of all parameters and of the input, where they have one.
  std::vector<at::Tensor> gradients(const at::Tensor& input, bool checkpointing) const {
    torch::autograd::backward({forward(input, checkpointing).square().sum()}, {});
    std::vector<at::Tensor> found{std::exchange(input.mutable_grad(), {})};
    for (const std::vector<at::Tensor>& layer : layers) {
      for (const at::Tensor& parameter : layer)
        found.push_back(std::exchange(parameter.mutable_grad(), {}));
    }
    return found;
  }
  std::vector<std::vector<at::Tensor>> layers;
};

void expect_same_bits(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(found[i].defined(), wanted[i].defined()) << i;
    if (wanted[i].defined()) {
      EXPECT_TRUE(at::equal(found[i], wanted[i])) << i;
    }
  }
}

}  // namespace

TEST(Checkpointed, GivesTheBitsOfAPlainCall) {
  const Stack stack(3);
  const at::Tensor input = random_leaf({kRows, kWidth}, 99);
  EXPECT_TRUE(at::equal(stack.forward(input, true), stack.forward(input, false)));
  expect_same_bits(stack.gradients(input, true), stack.gradients(input, false));
}

TEST(Checkpointed, GivesFrozenParametersNoGradientAndTheOthersTheirs) {
  const Stack stack(3);
  stack.layers[0][1].set_requires_grad(false);
  for (const at::Tensor& parameter : stack.layers[2]) parameter.set_requires_grad(false);
  const at::Tensor input = random_leaf({kRows, kWidth}, 99).detach();
  expect_same_bits(stack.gradients(input, true), stack.gradients(input, false));
}

TEST(Checkpointed, TheSecondPassNeedsNoValuesOfItsLastProduct) {
  const at::Tensor input = random_leaf({kRows, kWidth}, 1);
  const LinearWeights first{.weight = random_leaf({kInner, kWidth}, 2), .bias = {}},
      last{.weight = random_leaf({kWidth, kInner}, 3), .bias = {}};
  const TwoPassBlock block = [&](const std::vector<at::Tensor>& inputs, Results results) {
    const at::Tensor inner = at::silu(linear(inputs[0], first));
    return std::vector<at::Tensor>{inputs[0] + linear(inner, last, results)};
  };
  const auto gradients = [&](const at::Tensor& output) {
    return torch::autograd::grad({output.square().sum()}, {input, first.weight, last.weight});
  };
  const at::Tensor plain = block({input}, Results::kRead).front(),
                   lean = run_checkpointed(block, {input}).front();
  EXPECT_TRUE(at::equal(lean, plain));
  expect_same_bits(gradients(lean), gradients(plain));
}

TEST(Checkpointed, HasSeveralResultsSomeOfThemWithoutGradients) {
  const at::Tensor input = random_leaf({kRows, kWidth}, 1).detach();
  const LinearWeights frozen{.weight = random_leaf({kInner, kWidth}, 2).detach(), .bias = {}},
      trained{.weight = random_leaf({kInner, kWidth}, 3), .bias = {}};
  const TwoPassBlock block = [&](const std::vector<at::Tensor>& inputs, Results results) {
    std::vector<at::Tensor> outputs;
    for (const LinearWeights& layer : {frozen, trained})
      outputs.push_back(linear(inputs[0], layer, results));
    return outputs;
  };
  const auto gradient = [&](const std::vector<at::Tensor>& outputs) {
    EXPECT_FALSE(outputs[0].requires_grad());
    EXPECT_TRUE(outputs[1].requires_grad());
    return torch::autograd::grad({(outputs[0] * outputs[1]).sum()}, {trained.weight});
  };
  expect_same_bits(gradient(run_checkpointed(block, {input})),
                   gradient(block({input}, Results::kRead)));
}

TEST(Checkpointed, MakesNoGraphWhereNothingNeedsOne) {
  const Stack stack(3);
  for (const at::Tensor& parameter : stack.layers[0]) parameter.set_requires_grad(false);
  for (const at::Tensor& parameter : stack.layers[1]) parameter.set_requires_grad(false);
  int64_t num_runs = 0;
  const Block counted = [&](const std::vector<at::Tensor>& inputs) {
    ++num_runs;
    return at::linear(inputs[0], stack.layers[0][1]);
  };
  const at::Tensor input = random_leaf({kRows, kWidth}, 99);
  EXPECT_FALSE(run_checkpointed(counted, {input.detach()}).requires_grad());
  {
    const at::NoGradGuard no_grad;
    EXPECT_FALSE(run_checkpointed(counted, {input}).requires_grad());
  }
  EXPECT_EQ(num_runs, 2);
  torch::autograd::backward({run_checkpointed(counted, {input}).sum()}, {});
  EXPECT_EQ(num_runs, 4);  // forward, and again for the backward pass
}

TEST(Checkpointed, HalvesTheActivationsOfSixteenLayersAtLeast) {
  const Stack stack(16);
  const at::Tensor input = random_leaf({kRows, kWidth}, 99).detach();
  // Gradients are not activations: there before the meter starts.
  const auto peak_of = [&](bool checkpointing) {
    for (const std::vector<at::Tensor>& layer : stack.layers) {
      for (const at::Tensor& parameter : layer)
        parameter.mutable_grad() = at::zeros_like(parameter);
    }
    const test::MemoryMeter meter;
    torch::autograd::backward({stack.forward(input, checkpointing).square().sum()}, {});
    return meter.peak_bytes();
  };
  const int64_t plain = peak_of(false), lean = peak_of(true);
  EXPECT_GT(plain, 16 * kRows * kInner * 4);  // the meter sees activations
  EXPECT_LE(2 * lean, plain) << lean << " " << plain;
}

}  // namespace rematch
