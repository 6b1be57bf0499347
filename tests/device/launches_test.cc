// Number of operators that a layer launches on a device, forward and backward
// (docs/contract/DEVICE.md).
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <functional>

#include "device/flash_reference.h"
#include "model/lora.h"
#include "model/nn/attention_choice.h"
#include "model/nn/four_bit.h"
#include "model/oracle_cases.h"
#include "model/tiny_checkpoint.h"
#include "support/pretend_device.h"

namespace rematch {
namespace {

at::Device device() {
  static const bool is_given = (test::give_flash_to_pretend_device(), true);
  (void)is_given;
  return test::pretend_device();
}

using Names = std::vector<std::string>;

Names launches_of(const std::function<void()>& work) {
  Names names;
  test::watch_launches([&](const std::string& name, const auto&) { names.push_back(name); });
  work();
  test::watch_launches(nullptr);
  return names;
}

// Launches from call number `first` of an operator to call number `end`.
int64_t launches_between(const Names& names, const std::string& mark, int64_t first, int64_t end) {
  int64_t seen = -1, count = 0;
  for (const std::string& name : names) {
    if (name == mark) ++seen;
    if (seen >= first && seen < end) ++count;
  }
  EXPECT_GE(seen, end) << mark;
  return count;
}

// A row's forward and backward pass in bfloat16.
struct RowLaunches {
  Names vision, forward, backward;

  explicit RowLaunches(const std::string& model_dir,
                       Checkpointing checkpointing = Checkpointing::kOff,
                       const std::string& frozen = "none") {
    choose_attention({device(), at::kBFloat16, 16});
    const auto model = Model::load(
        model_dir,
        {.dtype = at::kBFloat16, .device = device(), .gradient_checkpointing = checkpointing});
    for (const NamedParameter& parameter : model->parameters())
      at::Tensor(parameter.tensor).set_requires_grad(!parameter.name.starts_with(frozen));
    const test::OracleAnswers answers(model_dir);
    const RowInput row = answers.row("two_images");
    VisionFeatures features;
    at::Tensor hidden_TH;
    vision = launches_of([&] {
      features = model->encode_images(answers.images("two_images", model->description()));
    });
    forward = launches_of([&] { hidden_TH = model->forward_TH(row, features); });
    const at::Tensor gradient = at::ones_like(hidden_TH);
    backward = launches_of([&] { torch::autograd::backward({hidden_TH}, {gradient}); });
  }
};

constexpr int64_t kNormsOfLayer = 4;  // input, queries, keys, MLP

}  // namespace

TEST(LaunchBudget, ADecoderLayerForward) {
  const RowLaunches row(test::tiny_tied());
  // The second layer; the last one ends with the final norm.
  EXPECT_LE(
      launches_between(row.forward, "aten::_fused_rms_norm", kNormsOfLayer, 2 * kNormsOfLayer), 23);
}

TEST(LaunchBudget, ADecoderLayerBackward) {
  const RowLaunches row(test::tiny_tied());
  EXPECT_LE(launches_between(row.backward, "aten::_fused_rms_norm_backward", 1, 1 + kNormsOfLayer),
            43);
}

TEST(LaunchBudget, SelectiveCheckpointingRepeatsNoProductOfTheLanguageModel) {
  const auto num_products = [](Checkpointing checkpointing) {
    const RowLaunches row(test::tiny_tied(), checkpointing, "model.visual.");
    return std::count_if(row.backward.begin(), row.backward.end(), [](const std::string& name) {
      return name == "aten::mm" || name == "aten::addmm";
    });
  };
  const auto plain = num_products(Checkpointing::kOff);
  EXPECT_EQ(num_products(Checkpointing::kSelective), plain);
  EXPECT_GT(num_products(Checkpointing::kOn), plain);
}

TEST(LaunchBudget, AVisionBlockForward) {
  const RowLaunches row(test::tiny_untied());  // heads of 8, which flash attention takes
  EXPECT_LE(launches_between(row.vision, "aten::native_layer_norm", 0, 2), 14);
}

// Dequantising and the product, and again for the gradient of the input; nothing crosses the bus.
TEST(LaunchBudget, ALinearWithWeightsOfFourBits) {
  for (const bool use_double_quant : {false, true}) {
    FourBitSettings settings;
    settings.use_double_quant = use_double_quant;
    const auto weight = std::make_shared<const FourBitWeight>(
        quantise(at::randn({64, 128}), settings).to(device()));
    const at::Tensor x = at::randn({5, 128}).to(at::kBFloat16).to(device()).set_requires_grad(true);
    const at::Tensor gradient = at::ones({5, 64}).to(at::kBFloat16).to(device());
    const test::Traffic before = test::traffic();
    at::Tensor y;
    const Names forward = launches_of([&] { y = four_bit_affine(x, weight); }),
                backward = launches_of([&] { torch::autograd::backward({y}, {gradient}); });
    const test::Traffic traffic = test::traffic() - before;
    EXPECT_LE(forward.size(), use_double_quant ? 12 : 7) << testing::PrintToString(forward);
    EXPECT_LE(backward.size(), use_double_quant ? 14 : 9) << testing::PrintToString(backward);
    EXPECT_EQ(traffic.bytes_up, 0);
    EXPECT_EQ(traffic.waits, 0);
  }
}

// A and B are cast once for each of their values, not at every use.
TEST(LaunchBudget, ALinearWithLora) {
  const auto random = [](at::IntArrayRef sizes) { return at::randn(sizes).to(device()); };
  const LoraTensors tensors{.a_rI = random({4, 16}).set_requires_grad(true),
                            .b_Or = random({8, 4}).set_requires_grad(true),
                            .magnitude_O = {}};
  LinearWeights layer{.weight = random({8, 16}).to(at::kBFloat16), .bias = {}};
  layer.adapter = std::make_shared<LoraLinear>("0", LoraSettings{.rank = 4, .alpha = 8}, tensors,
                                               std::make_shared<LoraDropout>());
  const at::Tensor x = random({5, 16}).to(at::kBFloat16);
  const auto forward = [&] { return launches_of([&] { linear(x, layer); }).size(); };
  EXPECT_EQ(forward(), 5);
  EXPECT_EQ(forward(), 3);
  {
    const at::NoGradGuard no_grad;
    at::Tensor(tensors.a_rI).add_(1);
  }
  EXPECT_EQ(forward(), 4) << "A has changed";
}

TEST(DeviceKernels, TheFusedOperatorsGiveTheCpusValuesAndGradients) {
  const auto run = [](const at::Device& where) {
    const auto model = Model::load(test::tiny_tied(), {.dtype = at::kFloat, .device = where});
    for (const NamedParameter& parameter : model->parameters())
      at::Tensor(parameter.tensor).set_requires_grad(true);
    const test::OracleAnswers answers(test::tiny_tied());
    const at::Tensor hidden_TH =
        model->forward_TH(answers.row("two_images"),
                          model->encode_images(answers.images("two_images", model->description())));
    torch::autograd::backward({hidden_TH.square().sum()}, {});
    std::vector<std::pair<std::string, at::Tensor>> found{{"hidden", hidden_TH.detach().cpu()}};
    for (const NamedParameter& parameter : model->parameters()) {
      if (parameter.tensor.grad().defined())
        found.emplace_back(parameter.name, parameter.tensor.grad().cpu());
    }
    return found;
  };
  const auto here = run(at::kCPU), there = run(device());
  ASSERT_EQ(here.size(), there.size());
  for (size_t i = 0; i < here.size(); ++i) {
    EXPECT_LE((there[i].second - here[i].second).abs().max().item<double>(),
              2e-5 * std::max(1e-3, here[i].second.abs().max().item<double>()))
        << here[i].first;
  }
}

TEST(DeviceKernels, ThePatchEmbeddingIsNoConvolution) {
  const RowLaunches row(test::tiny_tied());
  EXPECT_EQ(std::count(row.vision.begin(), row.vision.end(), "aten::convolution"), 0);
  EXPECT_EQ(std::count(row.backward.begin(), row.backward.end(), "aten::convolution_backward"), 0);
}

}  // namespace rematch
