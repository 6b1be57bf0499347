// Adapters on a device: dropout that is drawn there, and products in the base's dtype.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <functional>

#include "model/adapter.h"
#include "model/checkpoint/safetensors.h"
#include "model/lora.h"
#include "model/lora_oracle_cases.h"
#include "model/nn/dropout.h"
#include "model/oracle_cases.h"
#include "model/tiny_checkpoint.h"
#include "support/pretend_device.h"

namespace rematch {
namespace {

const at::Device kDevice = test::pretend_device();

AdapterSelection all_linear(const Model& model) {
  std::vector<std::string> names;
  for (const NamedParameter& parameter : model.parameters()) names.push_back(parameter.name);
  return select_targets(model.description(), names, {});
}

// A model with an adapter, and the traffic of one training row on it.
struct TrainedRow {
  test::Traffic traffic;
  std::vector<at::Tensor> gradients;

  TrainedRow(double dropout, Checkpointing checkpointing, int64_t row = 0) {
    const auto model = Model::load(test::tiny_tied(),
                                   {.device = kDevice, .gradient_checkpointing = checkpointing});
    const auto adapter = Adapter::create(*model, all_linear(*model),
                                         {.lora = {.rank = 4, .alpha = 8, .dropout = dropout}});
    at::manual_seed(3);
    for (const NamedParameter& parameter : adapter->parameters()) {
      const at::NoGradGuard guard;
      at::Tensor(parameter.tensor).copy_(at::randn(parameter.tensor.sizes()) / 10);
    }
    const RowInput input = test::recipe_row(model->description());
    const VisionInput images{.pixel_values_NC = test::formula_pixels(28, 1536),
                             .grid_thw = input.grids[0]};
    const RowScope training = adapter->training_row(0, row);
    const test::Traffic before = test::traffic();
    const at::Tensor hidden_TH = model->forward_TH(input, model->encode_images(images));
    torch::autograd::backward({hidden_TH.square().sum()}, {});
    traffic = test::traffic() - before;
    for (const NamedParameter& parameter : adapter->parameters()) {
      if (parameter.tensor.grad().defined()) gradients.push_back(parameter.tensor.grad().cpu());
    }
  }
};

bool are_equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const at::Tensor& x, const at::Tensor& y) { return at::equal(x, y); });
}

}  // namespace

TEST(DeviceLora, DropoutUploadsNothing) {
  const TrainedRow without(0, Checkpointing::kOff), with(0.1, Checkpointing::kOff);
  EXPECT_EQ(with.traffic.bytes_up, without.traffic.bytes_up);
  EXPECT_EQ(with.traffic.waits, without.traffic.waits);
}

TEST(DeviceLora, ARecomputationDropsTheSameAndARowDropsItsOwn) {
  const TrainedRow plain(0.1, Checkpointing::kOff), again(0.1, Checkpointing::kOff),
      recomputed(0.1, Checkpointing::kOn), selective(0.1, Checkpointing::kSelective),
      other(0.1, Checkpointing::kOff, 1);
  EXPECT_TRUE(are_equal(plain.gradients, again.gradients));
  EXPECT_TRUE(are_equal(plain.gradients, recomputed.gradients));
  EXPECT_TRUE(are_equal(plain.gradients, selective.gradients));
  EXPECT_FALSE(are_equal(plain.gradients, other.gradients));
}

TEST(DeviceDropout, DropsTheShareThatItIsToldAndLeavesTheGeneratorAlone) {
  const at::Tensor x = at::ones({200, 500}).to(kDevice);
  const auto draw = [&] { return std::get<0>(at::native_dropout(x, 0.5, /*train=*/true)).cpu(); };
  at::manual_seed(5);
  const at::Tensor undisturbed = (draw(), draw());
  at::manual_seed(5);
  draw();
  const at::Tensor dropped = seeded_dropout(x, 0.05, 7).cpu();
  EXPECT_TRUE(at::equal(draw(), undisturbed));
  EXPECT_NEAR(dropped.eq(0).to(at::kFloat).mean().item<double>(), 0.05, 0.003);
  EXPECT_NEAR(dropped.mean().item<double>(), 1, 0.01);
  EXPECT_TRUE(at::equal(dropped, seeded_dropout(x, 0.05, 7).cpu()));
  EXPECT_FALSE(at::equal(dropped, seeded_dropout(x, 0.05, 8).cpu()));
}

// One Linear of each kind against PEFT under torch.autocast("cpu", bfloat16).
class AutocastLayer : public testing::TestWithParam<std::string> {};

TEST_P(AutocastLayer, EqualsPeft) {
  const auto file =
      SafetensorsFile::open(test::source_path("tests/golden/lora/autocast.safetensors"));
  const std::string key = "autocast." + GetParam() + ".";
  const auto take = [&](const char* name) { return file->tensor(key + name).to(kDevice); };
  const auto leaf = [&](const char* name) { return take(name).set_requires_grad(true); };
  const bool use_dora = key.find("dora") != std::string::npos,
             drops = key.find("dropout") != std::string::npos;
  auto dropout = std::make_shared<LoraDropout>();
  dropout->active = drops;
  dropout->mask = test::recipe_mask;
  const LoraSettings options{
      .rank = 2, .alpha = 3, .dropout = drops ? 0.1 : 0.0, .use_dora = use_dora};
  const LoraTensors tensors{leaf("a"), leaf("b"), use_dora ? leaf("m") : at::Tensor()};
  LinearWeights layer{take("weight"), file->has(key + "bias") ? take("bias") : at::Tensor()};
  layer.adapter = std::make_shared<LoraLinear>("0", options, tensors, dropout);
  const at::Tensor x = leaf("x"), y = linear(x, layer);
  EXPECT_EQ(y.scalar_type(), at::kBFloat16);
  torch::autograd::backward({y}, {take("g").to(y.scalar_type())});
  const auto expect_near = [&](const at::Tensor& found, const char* name) {
    const at::Tensor expected = file->tensor(key + name).to(at::kFloat);
    const double error =
        (found.detach().cpu().to(at::kFloat) - expected).abs().max().item<double>();
    EXPECT_LE(error, 2e-2 * std::max(1.0, expected.abs().max().item<double>())) << name;
  };
  expect_near(y, "y");
  expect_near(x.grad(), "grad_x");
  expect_near(tensors.a_rI.grad(), "grad_a");
  expect_near(tensors.b_Or.grad(), "grad_b");
  if (use_dora) expect_near(tensors.magnitude_O.grad(), "grad_m");
}

INSTANTIATE_TEST_SUITE_P(AllKinds, AutocastLayer,
                         testing::Values("plain.lora", "plain.dora", "plain.lora_dropout",
                                         "plain.dora_dropout", "bias.lora", "bias.dora",
                                         "bias.lora_dropout", "bias.dora_dropout"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

}  // namespace rematch
