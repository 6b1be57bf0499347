#include <gtest/gtest.h>

#include "model/oracle_cases.h"
#include "model/tiny_checkpoint.h"

namespace rematch {
namespace {

#define SKIP_WITHOUT_CUDA() \
  if (!at::hasCUDA()) GTEST_SKIP() << "this torch build and machine have no CUDA device"

at::Tensor logits_on(const std::string& base, const std::string& name,
                     const ModelOptions& options) {
  const at::NoGradGuard no_grad;
  const auto model = Model::load(base, options);
  const test::OracleAnswers answers(base);
  const at::Tensor hidden = model->forward_TH(
      answers.row(name), model->encode_images(answers.images(name, model->description())));
  EXPECT_EQ(hidden.device().type(), options.device.type());
  return model->head_KV(hidden).to(at::kCPU).to(at::kFloat);
}

TEST(ModelGpu, GivesTheLogitsOfTheCpuInEveryFamilyAndInFourBits) {
  SKIP_WITHOUT_CUDA();
  for (const std::string& base : {test::tiny_tied(), test::windows_tied(), test::delta_tied()}) {
    for (const std::string& name : test::OracleAnswers::cases()) {
      for (const bool is_packed : {false, true}) {
        ModelOptions options;
        if (is_packed) options.four_bit = FourBitSettings{};
        const at::Tensor wanted = logits_on(base, name, options);
        options.device = at::kCUDA;
        EXPECT_LE((logits_on(base, name, options) - wanted).abs().max().item<double>(),
                  1e-3 * wanted.abs().max().item<double>())
            << base << " " << name << (is_packed ? " in 4 bits" : "");
      }
    }
  }
}

TEST(ModelGpu, Bfloat16StaysNearFloat32) {
  SKIP_WITHOUT_CUDA();
  for (const std::string& base : {test::tiny_tied(), test::windows_tied(), test::delta_tied()}) {
    const at::Tensor wanted = logits_on(base, "two_images", {}),
                     found = logits_on(base, "two_images",
                                       {.dtype = at::kBFloat16, .device = at::kCUDA});
    EXPECT_LE((found - wanted).norm().item<double>(), 0.05 * wanted.norm().item<double>()) << base;
  }
}

}  // namespace
}  // namespace rematch
