// Attention by cumulative lengths on a device that has it (tests/device/flash_reference.h), and who
// chooses it.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>

#include "device/flash_reference.h"
#include "engine/rollout/native/aten/runner.h"
#include "model/nn/attention.h"
#include "model/oracle_cases.h"
#include "model/tiny_checkpoint.h"
#include "nn/paged_case.h"
#include "rollout/cpu_runner_scene.h"
#include "support/pretend_device.h"

namespace rematch {
namespace {

at::Device device() {
  static const bool is_given = (test::give_flash_to_pretend_device(), true);
  (void)is_given;
  return test::pretend_device();
}

// Rows [T, heads, 16] of three inputs, four query heads for two of keys.
std::vector<at::Tensor> inputs(int64_t num_rows, at::ScalarType dtype) {
  const auto ramp = [&](int64_t heads, double phase) {
    return at::sin(at::arange(num_rows * heads * 16, at::kDouble) * 0.731 + phase)
        .view({num_rows, heads, 16})
        .to(dtype);
  };
  return {ramp(4, 0.1), ramp(2, 1.7), ramp(2, 2.9)};
}

// The output and the gradients of its sum of squares.
std::vector<at::Tensor> with_gradients(
    const std::function<at::Tensor(const std::vector<at::Tensor>&)>& attend,
    const std::vector<at::Tensor>& values, const at::Device& where) {
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& value : values) leaves.push_back(value.to(where).requires_grad_());
  const at::Tensor out = attend(leaves);
  std::vector<at::Tensor> results =
      torch::autograd::grad({out.to(at::kFloat).square().sum()}, leaves);
  results.push_back(out.detach());
  for (at::Tensor& result : results) result = result.cpu().to(at::kFloat);
  return results;
}

void expect_near(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& wanted,
                 double tolerance) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_LE((found[i] - wanted[i]).abs().max().item<double>(),
              tolerance * wanted[i].abs().max().item<double>())
        << i;
  }
}

// Logits of a recorded row with images.
at::Tensor logits_of(const std::string& model_dir, const std::string& row, at::ScalarType dtype,
                     const at::Device& where) {
  const at::NoGradGuard no_grad;
  const auto model = Model::load(model_dir, {.dtype = dtype, .device = where});
  const test::OracleAnswers answers(model_dir);
  const at::Tensor hidden_TH = model->forward_TH(
      answers.row(row), model->encode_images(answers.images(row, model->description())));
  return model->head_KV(hidden_TH).cpu().to(at::kFloat);
}

const std::vector<int64_t> kLens{5, 1, 0, 9, 9, 3};

// The device is there before autograd starts its queues, and has been tried for flash attention.
class VarlenAttention : public ::testing::Test {
 protected:
  VarlenAttention() {
    for (const int64_t head_dim : {8, 16, 24, 32})
      choose_attention({device(), at::kBFloat16, head_dim});
  }
};

}  // namespace

TEST(ChooseAttention, TakesCumulativeLengthsForBfloat16OnAGpuThatHasFlashAttention) {
  const at::Device gpu(at::kCUDA, 1);
  const auto yes = [](const at::Device&, int64_t) { return true; };
  const auto no = [](const at::Device&, int64_t) { return false; };
  const auto never = [](const at::Device&, int64_t) -> bool {
    throw std::runtime_error("asked for nothing");
  };
  using enum AttentionKernel;
  for (const int64_t head_dim : {64, 72, 80, 128, 256}) {
    EXPECT_EQ(choose_attention({gpu, at::kBFloat16, head_dim}, yes), kVarlen) << head_dim;
    EXPECT_EQ(choose_attention({gpu, at::kBFloat16, head_dim}, no), kGroups) << "an old GPU";
    EXPECT_EQ(choose_attention({gpu, at::kFloat, head_dim}, never), kGroups);
    EXPECT_EQ(choose_attention({at::kCPU, at::kBFloat16, head_dim}, never), kGroups);
  }
  for (const int64_t head_dim : {0, 12, 264})
    EXPECT_EQ(choose_attention({gpu, at::kBFloat16, head_dim}, never), kGroups) << head_dim;
}

// Some GPUs have no backward pass for heads above 192.
TEST(ChooseAttention, AsksForEachHeadSize) {
  const auto up_to_192 = [](const at::Device&, int64_t head_dim) { return head_dim <= 192; };
  const auto choice = [&](int64_t head_dim) {
    return choose_attention({at::Device(at::kCUDA, 0), at::kBFloat16, head_dim}, up_to_192);
  };
  EXPECT_EQ(choice(128), AttentionKernel::kVarlen);
  EXPECT_EQ(choice(256), AttentionKernel::kGroups);
}

TEST(ChooseAttention, TriesTheDeviceAndSaysWhatItFound) {
  EXPECT_EQ(choose_attention({device(), at::kBFloat16, 16}), AttentionKernel::kVarlen);
  EXPECT_EQ(describe_attention(device(), at::kBFloat16, {128, 100}),
            "flash attention by cumulative lengths for heads of 128, SDPA by groups of lengths for "
            "heads of 100");
  EXPECT_EQ(describe_attention(at::kCPU, at::kFloat, {128}),
            "SDPA by groups of lengths for heads of 128");
}

TEST_F(VarlenAttention, EqualsTheGroupsForwardAndBackward) {
  for (const bool is_causal : {true, false}) {
    const auto by_groups = [&](const std::vector<at::Tensor>& x) {
      return SegmentAttention(kLens, is_causal).attend(x[0], x[1], x[2]);
    };
    const auto by_lengths = [&](const std::vector<at::Tensor>& x) {
      const SegmentBounds bounds = SegmentBounds::from_lens({5, 1, 9, 9, 3}, device());
      return varlen_attention(x[0], x[1], x[2], bounds, bounds, is_causal);
    };
    const std::vector<at::Tensor> x = inputs(27, at::kFloat);
    expect_near(with_gradients(by_lengths, x, device()), with_gradients(by_groups, x, at::kCPU),
                1e-5);
  }
}

TEST_F(VarlenAttention, IsWhatARowInBfloat16GoesThrough) {
  const auto attend = [](const std::vector<at::Tensor>& x) {
    return VarlenCausalAttention(kLens).attend(0, x[0], x[1], x[2]);
  };
  const std::vector<at::Tensor> x = inputs(27, at::kBFloat16);
  expect_near(with_gradients(attend, x, device()), with_gradients(attend, x, at::kCPU), 2e-2);
}

TEST_F(VarlenAttention, NeitherWaitsNorTellsALayerTheLengthsAgain) {
  std::vector<at::Tensor> x;
  for (const at::Tensor& value : inputs(27, at::kBFloat16)) x.push_back(value.to(device()));
  VarlenCausalAttention attention(kLens);
  const test::Traffic before = test::traffic();
  for (int64_t layer = 0; layer < 3; ++layer) attention.attend(layer, x[0], x[1], x[2]);
  const test::Traffic passed = test::traffic() - before;
  EXPECT_EQ(passed.waits, 0);
  EXPECT_EQ(passed.uploads, 1);
}

// Frames, windows and text: every layer once, but for a tower whose heads have another size.
TEST_F(VarlenAttention, CarriesWholeModels) {
  for (const std::string& model_dir : {test::tiny_tied(), test::windows_tied()}) {
    const ModelDescription parts = describe_model(model_dir);
    const at::Tensor wanted = logits_of(model_dir, "two_images", at::kFloat, at::kCPU);
    ASSERT_EQ(choose_attention({device(), at::kBFloat16, parts.text.head_dim}),
              AttentionKernel::kVarlen);
    const int64_t before = test::num_flash_calls();
    const at::Tensor found = logits_of(model_dir, "two_images", at::kBFloat16, device());
    const bool in_tower = parts.vision.head_dim() % 8 == 0;
    EXPECT_EQ(test::num_flash_calls() - before,
              parts.text.num_layers() + (in_tower ? std::ssize(parts.vision.blocks) : 0))
        << model_dir;
    EXPECT_LE((found - wanted).norm().item<double>(), 0.05 * wanted.norm().item<double>())
        << model_dir;
  }
}

TEST_F(VarlenAttention, TheLastQueryOfASegmentSeesItsLastKey) {
  const std::vector<at::Tensor> x = inputs(9, at::kFloat);
  const at::Tensor q = x[0].narrow(0, 0, 4);
  const at::Tensor mask =
      at::zeros({1, 1, 4, 9}).masked_fill(at::ones({4, 9}, at::kBool).triu(6), -INFINITY);
  const auto batched = [](const at::Tensor& rows) { return rows.transpose(0, 1).unsqueeze(0); };
  const at::Tensor wanted =
      masked_attention(batched(q), batched(x[1]), batched(x[2]), mask)[0].transpose(0, 1);
  const at::Tensor found = varlen_attention(q.to(device()), x[1].to(device()), x[2].to(device()),
                                            SegmentBounds::from_lens({4}, device()),
                                            SegmentBounds::from_lens({9}, device()), true);
  EXPECT_LT((found.cpu() - wanted).abs().max().item<double>(), 1e-5);
}

TEST_F(VarlenAttention, ReadsKeysInPages) {
  test::expect_pages_are_read(device());
  EXPECT_TRUE(has_paged_attention({device(), at::kBFloat16, 16}));
  EXPECT_FALSE(has_paged_attention({device(), at::kFloat, 16}));
  EXPECT_FALSE(has_paged_attention({at::kCPU, at::kBFloat16, 16}));
}

// Two prompts in two steps; in the second, one of them continues with several rows, the other with
// one.
TEST_F(VarlenAttention, PrefillsTheNativeEngine) {
  const auto model_on = [](const at::Device& where) {
    return Model::load(test::tiny_tied(), {.dtype = at::kBFloat16, .device = where});
  };
  const auto here = model_on(at::kCPU);
  const test::StepPrompt a(*here, 30, {1, 4, 6}, 1), b(*here, 8, {0, 0, 0}, 2);
  const std::vector<int32_t> blocks_a{2, 0, 5}, blocks_b{4};
  const auto logits_of = [&](StepRunner& runner) {
    runner.reserve({.num_blocks = 6, .block_len = 16}, 64);
    std::vector<float> logits;
    for (const Step& step :
         {test::make_step({{&a, 0, 20, blocks_a}, {&b, 0, 7, blocks_b}}),
          test::make_step({{&a, 20, a.length(), blocks_a}, {&b, 7, 8, blocks_b}})}) {
      const std::span<float> found = runner.forward(step);
      logits.insert(logits.end(), found.begin(), found.end());
    }
    return at::tensor(logits);
  };
  const at::Tensor wanted = logits_of(*make_aten_runner(here));
  ASSERT_EQ(choose_attention({device(), at::kBFloat16, 16}), AttentionKernel::kVarlen);
  const int64_t before = test::num_flash_calls();
  const at::Tensor found = logits_of(*make_aten_runner(model_on(device())));
  EXPECT_EQ(test::num_flash_calls() - before, 2 * here->description().text.num_layers())
      << "one for all prompts of a step";
  EXPECT_LE((found - wanted).norm().item<double>(), 0.03 * wanted.norm().item<double>());
}

// Stand-in for a recorded graph: repeats the work on the tensors it was recorded with.
struct RepeatedWork : StepGraph {
  explicit RepeatedWork(int& replays) : num_replays(replays) {}
  void capture(const std::function<void()>& work_) override { work = work_; }
  void replay() override {
    ++num_replays;
    work();
  }
  int& num_replays;
  std::function<void()> work;
};

// A step whose sequences all decode, computed three times and then replayed.
TEST_F(VarlenAttention, ReplaysStepsOverPages) {
  const std::shared_ptr<Model> model =
      Model::load(test::tiny_tied(), {.dtype = at::kBFloat16, .device = device()});
  const test::StepPrompt a(*model, 30, {0, 0, 0}, 1), b(*model, 8, {0, 0, 0}, 2);
  const std::vector<int32_t> blocks_a{2}, blocks_b{1};
  int num_replays = 0;
  const auto runner =
      make_aten_runner(model, [&] { return std::make_unique<RepeatedWork>(num_replays); }, {});
  runner->reserve({.num_blocks = 3, .block_len = kPageTokens}, 64);
  runner->forward(test::make_step({{&a, 0, 29, blocks_a}, {&b, 0, 7, blocks_b}}));
  std::vector<float> first;
  for (int i = 0; i < 6; ++i) {
    const std::span<float> found =
        runner->forward(test::make_step({{&a, 29, 30, blocks_a}, {&b, 7, 8, blocks_b}}));
    if (i == 0) first.assign(found.begin(), found.end());
    EXPECT_TRUE(std::equal(found.begin(), found.end(), first.begin(), first.end())) << i;
  }
  EXPECT_EQ(num_replays, 4) << "one checks the recording";
}

// The same prompts and two steps of decoding, with and without a prompt in the same step; no key is
// copied for a sequence that decodes.
TEST_F(VarlenAttention, DecodesInPages) {
  const auto model_on = [](const at::Device& where) {
    return Model::load(test::tiny_tied(), {.dtype = at::kBFloat16, .device = where});
  };
  const auto here = model_on(at::kCPU);
  const test::StepPrompt a(*here, 30, {1, 4, 6}, 1), b(*here, 8, {0, 0, 0}, 2);
  const auto logits_of = [&](StepRunner& runner, int64_t block_len) {
    EXPECT_EQ(runner.block_len(16), block_len);
    runner.reserve({.num_blocks = 4, .block_len = block_len}, 64);
    const bool is_paged = block_len == kPageTokens;
    const std::vector<int32_t> blocks_a = is_paged ? std::vector<int32_t>{2} : std::vector{2, 0, 3},
                               blocks_b{1};
    std::vector<float> logits;
    const auto add = [&](const Step& step) {
      const std::span<float> found = runner.forward(step);
      logits.insert(logits.end(), found.begin(), found.end());
    };
    const int64_t end = a.length();
    add(test::make_step({{&a, 0, end - 2, blocks_a}}));
    add(test::make_step({{&a, end - 2, end - 1, blocks_a}, {&b, 0, 7, blocks_b}}));
    add(test::make_step({{&a, end - 1, end, blocks_a}, {&b, 7, 8, blocks_b}}));
    return at::tensor(logits);
  };
  const at::Tensor wanted = logits_of(*make_aten_runner(here), 16);
  const int64_t before = test::num_flash_calls();
  const at::Tensor found = logits_of(*make_aten_runner(model_on(device())), kPageTokens);
  EXPECT_EQ(test::num_flash_calls() - before, 4 * here->description().text.num_layers())
      << "two prefills, two steps that decode";
  EXPECT_LE((found - wanted).norm().item<double>(), 0.03 * wanted.norm().item<double>());
}

}  // namespace rematch
