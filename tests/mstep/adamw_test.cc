// Against torch.optim.AdamW and torch.nn.utils.clip_grad_norm_ (tests/golden/mstep_adamw.json.how).
#include "learn/mstep/optim/adamw.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "learn/mstep/optim/float32_gradients.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

Json golden(const char* key) {
  return read_json_file(test::source_path("tests/golden/mstep_adamw.json"))[key];
}

at::Tensor tensor_of(const Json& values) {
  return at::tensor(values.get<std::vector<float>>(), at::kFloat);
}

// The kernels are the same; a last bit may differ between instruction sets.
void expect_equal(const at::Tensor& value, const Json& expected, double relative = 3e-7) {
  const at::Tensor reference = tensor_of(expected);
  const at::Tensor flat = value.detach().to(at::kFloat).flatten();
  EXPECT_TRUE(at::allclose(flat, reference, relative, 1e-10))
      << "largest difference " << (flat - reference).abs().max().item<double>();
}

std::vector<ParameterGroup> groups_of(const Json& run) {
  const at::ScalarType dtype = run["dtype"] == "bfloat16" ? at::kBFloat16 : at::kFloat;
  std::vector<ParameterGroup> groups;
  for (size_t i = 0; i < run["start"].size(); ++i) {
    ParameterGroup& group = groups.emplace_back();
    group.name = fmt::format("group{}", i);
    group.learning_rate = run["rates"][i];
    group.weight_decay = run["decays"][i];
    group.names = {fmt::format("p{}", i)};
    group.parameters = {tensor_of(run["start"][i])
                            .reshape(run["shapes"][i].get<std::vector<int64_t>>())
                            .to(dtype)
                            .requires_grad_()};
  }
  return groups;
}

void set_grads(const std::vector<ParameterGroup>& groups, const Json& grads) {
  for (size_t i = 0; i < groups.size(); ++i) {
    const at::Tensor& parameter = groups[i].parameters[0];
    if (grads[i].is_null()) {
      parameter.mutable_grad().reset();
    } else {
      parameter.mutable_grad() =
          tensor_of(grads[i]).reshape(parameter.sizes()).to(parameter.scalar_type());
    }
  }
}

at::Tensor entry(const AdamW& optimizer, const std::string& name) {
  for (const auto& [key, tensor] : optimizer.state()) {
    if (key == name) return tensor;
  }
  return {};
}

}  // namespace

TEST(AdamW, EqualsTorchAfterOneStepAndAfterTwenty) {
  for (const Json& run : golden("adamw")) {
    SCOPED_TRACE(run["dtype"].get<std::string>());
    AdamW optimizer(groups_of(run),
                    {.beta1 = run["beta1"], .beta2 = run["beta2"], .epsilon = run["epsilon"]});
    for (size_t s = 0; s < run["steps"].size(); ++s) {
      SCOPED_TRACE(s);
      const Json& step = run["steps"][s];
      set_grads(optimizer.groups(), step["grads"]);
      optimizer.step(step["factor"]);
      for (size_t i = 0; i < optimizer.groups().size(); ++i) {
        if (run["dtype"] == "bfloat16") {
          expect_equal(entry(optimizer, fmt::format("p{}.master", i)), step["masters"][i], 1e-6);
          // A master one bit off may round to the neighbouring bfloat16.
          expect_equal(optimizer.groups()[i].parameters[0], step["parameters"][i],
                       s == 0 ? 0.0 : 8e-3);
        } else {
          expect_equal(optimizer.groups()[i].parameters[0], step["parameters"][i],
                       s == 0 ? 3e-7 : 1e-6);
        }
      }
    }
    EXPECT_EQ(optimizer.num_steps(), 20);
  }
}

TEST(AdamW, AnUpdateCountsAsAChangeOfTheParameter) {
  const at::Tensor parameter = at::ones({4}).requires_grad_();
  AdamW optimizer({{"llm", 1e-3, 0.0, {"p"}, {parameter}}}, {});
  for (int i = 0; i < 2; ++i) {
    const int64_t before = parameter._version();
    parameter.mutable_grad() = at::ones({4});
    optimizer.step(1.0);
    EXPECT_GT(parameter._version(), before);
  }
}

TEST(AdamW, MastersKeepUpdatesThatBfloat16WouldLose) {
  const at::Tensor parameter = at::ones({1}, at::kBFloat16).requires_grad_();
  AdamW optimizer({{"llm", 1e-5, 0.0, {"p"}, {parameter}}}, {});
  for (int i = 0; i < 1000; ++i) {
    parameter.mutable_grad() = at::ones({1}, at::kBFloat16);
    optimizer.step(1.0);
  }
  EXPECT_NEAR(parameter.item<float>(), 0.99, 0.005);
}

TEST(AdamW, ResumesFromItsStateBitForBit) {
  for (const Json& run : golden("adamw")) {
    AdamW whole(groups_of(run), {}), first(groups_of(run), {}), second(groups_of(run), {});
    for (size_t s = 0; s < 8; ++s) {
      for (AdamW* optimizer : {&whole, s < 5 ? &first : &second}) {
        // step 4 leaves one parameter out: its own count must survive
        set_grads(optimizer->groups(), run["steps"][s]["grads"]);
        optimizer->step(1.0);
      }
      if (s == 4) {
        for (size_t i = 0; i < 3; ++i) {
          const at::NoGradGuard no_grad;
          second.groups()[i].parameters[0].detach().copy_(first.groups()[i].parameters[0]);
        }
        std::vector<std::pair<std::string, at::Tensor>> saved;
        for (const auto& [name, tensor] : first.state()) saved.emplace_back(name, tensor.clone());
        second.load_state(saved, first.num_steps());
      }
    }
    for (size_t i = 0; i < 3; ++i)
      EXPECT_TRUE(at::equal(whole.groups()[i].parameters[0], second.groups()[i].parameters[0]));
  }
}

TEST(AdamW, RefusesAStateThatDoesNotFit) {
  const Json run = golden("adamw")[0];
  AdamW optimizer(groups_of(run), {});
  auto state = optimizer.state();
  state.pop_back();
  UserError error = test::catch_user_error([&] { optimizer.load_state(state, 1); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_EQ(error.problems()[0].where, "p2.exp_avg_sq");
  state.emplace_back("p2.exp_avg_sq", at::zeros({7}));
  error = test::catch_user_error([&] { optimizer.load_state(state, 1); });
  EXPECT_NE(error.problems()[0].what.find("expected 6 values, found 7"), std::string::npos);
}

TEST(ClipGradNorm, EqualsTorch) {
  for (const Json& run : golden("clip")) {
    ParameterGroup one{"a", 1, 0, {}, {}}, two{"b", 1, 0, {}, {}};
    for (size_t i = 0; i < run["grads"].size(); ++i) {
      const at::Tensor parameter = at::zeros_like(tensor_of(run["grads"][i])).requires_grad_();
      parameter.mutable_grad() = tensor_of(run["grads"][i]);
      (i < 2 ? one : two).parameters.push_back(parameter);
    }
    const double norm = run["norm"];
    EXPECT_NEAR(clip_grad_norm({one, two}, run["max_norm"]), norm, 3e-7 * norm);
    for (size_t i = 0; i < 3; ++i)
      expect_equal((i < 2 ? one : two).parameters[i < 2 ? i : 0].grad(), run["clipped"][i]);
  }
}

TEST(ClipGradNorm, OnlyMeasuresWithoutALimitAndSkipsParametersWithoutGradient) {
  const at::Tensor with = at::zeros({2}).requires_grad_();
  const at::Tensor without = at::zeros({2}).requires_grad_();
  with.mutable_grad() = at::tensor({3.0f, 4.0f});
  EXPECT_EQ(clip_grad_norm({{"a", 1, 0, {"x", "y"}, {with, without}}}, 0.0), 5.0);
  EXPECT_EQ(with.grad()[0].item<float>(), 3.0f);
  EXPECT_FALSE(without.grad().defined());
  EXPECT_EQ(clip_grad_norm({{"a", 1, 0, {"y"}, {without}}}, 1.0), 0.0);
}

TEST(Float32Gradients, SumSmallGradientsThatBfloat16WouldLose) {
  const at::Tensor parameter = at::ones({1}, at::kBFloat16).requires_grad_();
  Float32Gradients gradients({{"llm", 1, 0, {"p"}, {parameter}}});
  const auto backward = [&](double scale) {
    torch::autograd::backward({(parameter * scale).sum()}, {});
  };
  backward(1.0);
  for (int i = 0; i < 256; ++i) backward(1.0 / 1024);
  EXPECT_FALSE(parameter.grad().defined());  // taken as soon as it was complete
  gradients.publish();
  EXPECT_EQ(parameter.grad().scalar_type(), at::kFloat);
  EXPECT_EQ(parameter.grad().item<float>(), 1.25f);

  parameter.mutable_grad().reset();
  backward(1.0);
  gradients.discard();
  gradients.publish();
  EXPECT_FALSE(parameter.grad().defined());
}

}  // namespace rematch
