// Number of operators that a layer launches on a device, forward and backward
// (docs/contract/DEVICE.md).
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "device/flash_reference.h"
#include "model/lora.h"
#include "model/nn/attention_choice.h"
#include "model/nn/four_bit.h"
#include "model/nn/more_norms.h"
#include "model/nn/short_conv.h"
#include "model/nn/swiglu.h"
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
    const auto model = load(model_dir, checkpointing, frozen);
    const test::OracleAnswers answers(model_dir);
    VisionFeatures features;
    vision = launches_of([&] {
      features = model->encode_images(answers.images("two_images", model->description()));
    });
    run(*model, answers.row("two_images"), features);
  }

  // Text in segments.
  RowLaunches(const std::string& model_dir, const std::vector<int64_t>& lens) {
    RowInput row{.token_ids = {},
                 .segment_lens = lens,
                 .grids = std::vector<std::vector<GridThw>>(lens.size())};
    row.token_ids.assign(static_cast<size_t>(std::accumulate(lens.begin(), lens.end(), int64_t{0})),
                         7);
    run(*load(model_dir, Checkpointing::kOff, "none"), row, {});
  }

 private:
  static std::shared_ptr<Model> load(const std::string& model_dir, Checkpointing checkpointing,
                                     const std::string& frozen) {
    for (const int64_t head_dim : {8, 16, 24, 32})
      choose_attention({device(), at::kBFloat16, head_dim});
    auto model = Model::load(
        model_dir,
        {.dtype = at::kBFloat16, .device = device(), .gradient_checkpointing = checkpointing});
    for (const NamedParameter& parameter : model->parameters())
      at::Tensor(parameter.tensor).set_requires_grad(!parameter.name.starts_with(frozen));
    return model;
  }

  void run(const Model& model, const RowInput& row, const VisionFeatures& features) {
    at::Tensor hidden_TH;
    forward = launches_of([&] { hidden_TH = model.forward_TH(row, features); });
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
      launches_between(row.forward, "aten::_fused_rms_norm", kNormsOfLayer, 2 * kNormsOfLayer), 20);
}

TEST(LaunchBudget, ADecoderLayerBackward) {
  const RowLaunches row(test::tiny_tied());
  EXPECT_LE(launches_between(row.backward, "aten::_fused_rms_norm_backward", 1, 1 + kNormsOfLayer),
            41);
}

// A layer with the delta rule of Qwen3.5: launches grow with the chunks of 64 tokens, which follow
// each other. From two lengths follows the number for 8192 tokens.
TEST(LaunchBudget, ADeltaLayerAnd8192Tokens) {
  // Mixer and MLP; the gated norm has a float32 weight here, and is not fused.
  constexpr int64_t kNormsOfDelta = 2, kNormsAfter = 1 + kNormsOfLayer;
  std::vector<int64_t> forward, backward;
  for (const int64_t num_tokens : {512, 1024}) {
    const RowLaunches row(test::delta_tied(), std::vector<int64_t>{num_tokens});
    forward.push_back(
        launches_between(row.forward, "aten::_fused_rms_norm", kNormsOfDelta, 2 * kNormsOfDelta));
    backward.push_back(launches_between(row.backward, "aten::_fused_rms_norm_backward", kNormsAfter,
                                        kNormsAfter + kNormsOfDelta));
  }
  const auto at_8192 = [](const std::vector<int64_t>& counts) {
    return counts[1] + (counts[1] - counts[0]) / 8 * (128 - 16);
  };
  EXPECT_LE(at_8192(forward), 700) << testing::PrintToString(forward);
  EXPECT_LE(at_8192(backward), 1400) << testing::PrintToString(backward);
  // Segments side by side take no more.
  const RowLaunches packed(test::delta_tied(), std::vector<int64_t>{512, 200, 512, 90});
  EXPECT_LE(
      launches_between(packed.forward, "aten::_fused_rms_norm", kNormsOfDelta, 2 * kNormsOfDelta),
      forward[0] + 16);
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

class DeviceKernelsOf : public testing::TestWithParam<std::string> {};

TEST_P(DeviceKernelsOf, GiveTheCpusValuesAndGradients) {
  const auto run = [](const at::Device& where) {
    const auto model = Model::load(GetParam(), {.dtype = at::kFloat, .device = where});
    for (const NamedParameter& parameter : model->parameters())
      at::Tensor(parameter.tensor).set_requires_grad(true);
    const test::OracleAnswers answers(GetParam());
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
  const double tolerance = GetParam() == test::delta_tied() ? 4e-5 : 2e-5;
  const auto here = run(at::kCPU), there = run(device());
  ASSERT_EQ(here.size(), there.size());
  for (size_t i = 0; i < here.size(); ++i) {
    EXPECT_LE((there[i].second - here[i].second).abs().max().item<double>(),
              tolerance * std::max(1e-3, here[i].second.abs().max().item<double>()))
        << here[i].first;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, DeviceKernelsOf,
                         testing::Values(test::tiny_tied(), test::windows_tied(),
                                         test::delta_tied()),
                         [](const auto& info) {
                           return info.param.substr(info.param.rfind('/') + 1);
                         });

// Functions that have a fused form in bfloat16 only.
TEST(DeviceKernels, NormsAndConvolutionInBfloat16AreThoseOfTheCpu) {
  at::manual_seed(4);
  const auto random = [](at::IntArrayRef sizes) { return at::randn(sizes).to(at::kBFloat16); };
  const std::vector<at::Tensor> norm_inputs{random({9, 4, 16}), random({9, 4, 16}), random({16})},
      conv_inputs{random({9, 16}), random({16, 1, 4})};
  const auto compare = [](const std::vector<at::Tensor>& inputs, const auto& apply) {
    const auto run = [&](const at::Device& where) {
      std::vector<at::Tensor> leaves;
      for (const at::Tensor& input : inputs)
        leaves.push_back(
            input.detach().to(where, at::kBFloat16, false, /*copy=*/true).set_requires_grad(true));
      const at::Tensor y = apply(leaves);
      std::vector<at::Tensor> found = torch::autograd::grad({y}, leaves, {at::ones_like(y)}, false,
                                                            false, /*allow_unused=*/true);
      found.push_back(y.detach());
      return found;
    };
    const std::vector<at::Tensor> there = run(device()), here = run(at::kCPU);
    for (size_t i = 0; i < here.size(); ++i) {
      if (!here[i].defined()) continue;
      const at::Tensor wanted = here[i].to(at::kFloat);
      EXPECT_LE((there[i].cpu().to(at::kFloat) - wanted).norm().item<double>(),
                0.01 * wanted.norm().item<double>())
          << i;
    }
  };
  compare(norm_inputs, [](const auto& x) { return offset_rms_norm(x[0], x[2], 1e-6); });
  compare(norm_inputs, [](const auto& x) { return gated_rms_norm(x[0], x[1], x[2], 1e-6); });
  compare(norm_inputs, [](const auto& x) { return swiglu(x[0], x[1]); });
  compare(conv_inputs, [](const auto& x) { return short_conv(x[0], x[1], {5, 1, 0, 3}); });
}

TEST(DeviceKernels, ThePatchEmbeddingIsNoConvolution) {
  const RowLaunches row(test::tiny_tied());
  EXPECT_EQ(std::count(row.vision.begin(), row.vision.end(), "aten::convolution"), 0);
  EXPECT_EQ(std::count(row.backward.begin(), row.backward.end(), "aten::convolution_backward"), 0);
}

}  // namespace rematch
