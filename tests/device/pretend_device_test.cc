#include "support/pretend_device.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "engine/ranks/device.h"
#include "model/nn/attention.h"
#include "model/nn/layers.h"
#include "model/nn/upload.h"

namespace rematch {
namespace {

const at::Device kDevice = test::pretend_device();

// The sum of squares of what a small network makes of x.
at::Tensor loss_of(const at::Tensor& x_TW, const at::Tensor& weight_WW) {
  const at::Tensor heads = linear(x_TW, {.weight = weight_WW, .bias = {}}).unflatten(-1, {4, 4});
  VarlenCausalAttention attention({3, 5, 2});
  const at::Tensor attended = attention.attend(0, heads, heads, heads).flatten(1);
  return rms_norm(at::gelu(attended), weight_WW.select(0, 0), 1e-6).pow(2).mean();
}

}  // namespace

TEST(PretendDevice, ComputesWhatTheCpuComputes) {
  const at::Tensor x = at::sin(at::arange(160) * 0.7).view({10, 16}),
                   weight = at::cos(at::arange(256) * 1.3).view({16, 16}).requires_grad_();
  const at::Tensor there = weight.detach().to(kDevice).requires_grad_();
  const at::Tensor loss = loss_of(x, weight), far = loss_of(x.to(kDevice), there);
  torch::autograd::backward({loss}, {});
  torch::autograd::backward({far}, {});
  EXPECT_EQ(far.device(), kDevice);
  EXPECT_EQ(there.grad().device(), kDevice);
  EXPECT_NEAR(far.item<double>(), loss.item<double>(), 1e-6);
  EXPECT_LT((there.grad().cpu() - weight.grad()).abs().max().item<double>(), 1e-6);
}

TEST(PretendDevice, RefusesWhatIsLeftOnTheCpu) {
  const at::Tensor there = at::ones({4, 4}).to(kDevice), here = at::ones({4, 4});
  EXPECT_THROW(at::add(there, here), c10::Error);
  EXPECT_THROW(at::mm(there, here), c10::Error);
  EXPECT_THROW(at::embedding(there, at::arange(2)), c10::Error) << "an index";
  EXPECT_THROW(there.index_copy(0, at::arange(4), there), c10::Error) << "an index";
  EXPECT_THROW(at::cat({there, here}), c10::Error) << "a list";
  EXPECT_THROW(at::mm(there, there).index_select(0, at::zeros({}, at::kLong)), c10::Error)
      << "a scalar where it is not a number";
  EXPECT_EQ(at::add(there, 2.0).sum().item<double>(), 48);
  EXPECT_EQ(at::mul(there, at::full({}, 3.0)).sum().item<double>(), 48)
      << "a scalar next to numbers";
}

TEST(PretendDeviceDeathTest, APointerThatTheHostFollowsEndsTheProcess) {
  const at::Tensor there = at::ones({4}).to(kDevice);
  EXPECT_DEATH({ EXPECT_EQ(there.const_data_ptr<float>()[0], 1.0f); }, "");
}

TEST(PretendDevice, CountsEveryWait) {
  const auto waits = [](auto&& work) {
    const test::Traffic before = test::traffic();
    work();
    return (test::traffic() - before).waits;
  };
  const at::Tensor there = at::ones({4}).to(kDevice);
  EXPECT_EQ(waits([&] { there.sum().item<double>(); }), 1);
  EXPECT_EQ(waits([&] { there.cpu(); }), 1);
  EXPECT_EQ(waits([&] { at::ones({4}).to(kDevice); }), 1);
  EXPECT_EQ(waits([&] { at::equal(there, there); }), 1);
  EXPECT_EQ(waits([&] { at::nonzero(there); }), 1);
  EXPECT_EQ(waits([&] {
              at::cumsum(
                  at::cat({there + 1, at::zeros_like(there)}).view({2, 4}).select(0, 1).clone(), 0);
            }),
            0);
}

TEST(Upload, QueuesACopyOnADeviceAndIsTheTensorItselfOnTheCpu) {
  const at::Tensor here = at::arange(12).view({3, 4}).t();
  const test::Traffic before = test::traffic();
  const at::Tensor there = upload(here, kDevice), index = upload_index({7, 5}, kDevice);
  const test::Traffic passed = test::traffic() - before;
  EXPECT_EQ(passed.waits, 0);
  EXPECT_EQ(passed.uploads, 2);
  EXPECT_TRUE(at::equal(there.cpu(), here));
  EXPECT_EQ(index[1].item<int64_t>(), 5);
  EXPECT_TRUE(upload(there, kDevice).is_same(there));
  EXPECT_TRUE(upload(here, at::kCPU).is_same(here));
}

TEST(ChooseDevice, TakesTheNameOfARegisteredBackend) {
  EXPECT_EQ(choose_device(test::kPretendName), kDevice);
  EXPECT_EQ(choose_device("auto"), at::Device(at::kCPU)) << "users get what they got";
  EXPECT_EQ(dtype_on(kDevice, ModelDtype::kAuto), at::kFloat);
}

}  // namespace rematch
