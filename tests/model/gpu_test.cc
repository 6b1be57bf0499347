#include <gtest/gtest.h>

#include "model/oracle_cases.h"
#include "model/tiny_checkpoint.h"

namespace rematch {
namespace {

#define SKIP_WITHOUT_CUDA() \
  if (!at::hasCUDA()) GTEST_SKIP() << "this torch build and machine have no CUDA device"

at::Tensor logits_on(at::Device device, at::ScalarType dtype, const std::string& name) {
  const at::NoGradGuard no_grad;
  const auto model = Model::load(test::tiny_tied(), {.dtype = dtype, .device = device});
  const test::OracleAnswers answers(test::tiny_tied());
  const at::Tensor hidden = model->forward_TH(
      answers.row(name), model->encode_images(answers.images(name, model->description())));
  EXPECT_EQ(hidden.device().type(), device.type());
  return model->head_KV(hidden).to(at::kCPU).to(at::kFloat);
}

TEST(Qwen3VLGpu, GivesTheLogitsOfTheCpu) {
  SKIP_WITHOUT_CUDA();
  for (const std::string& name : test::OracleAnswers::cases()) {
    const at::Tensor wanted = logits_on(at::kCPU, at::kFloat, name),
                     found = logits_on(at::kCUDA, at::kFloat, name);
    EXPECT_LE((found - wanted).abs().max().item<double>(), 1e-3 * wanted.abs().max().item<double>())
        << name;
  }
}

TEST(Qwen3VLGpu, Bfloat16StaysNearFloat32) {
  SKIP_WITHOUT_CUDA();
  const at::Tensor wanted = logits_on(at::kCPU, at::kFloat, "two_images"),
                   found = logits_on(at::kCUDA, at::kBFloat16, "two_images");
  EXPECT_LE((found - wanted).norm().item<double>(), 0.05 * wanted.norm().item<double>());
}

}  // namespace
}  // namespace rematch
