#include "engine/rollout/offload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <new>

#include "base/error.h"
#include "base/interrupt.h"
#include "learn/mstep/optim/adamw.h"
#include "learn/mstep/optim/float32_gradients.h"
#include "rollout/recording_mover.h"
#include "support/capture.h"

namespace rematch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A model of a float32, a bfloat16, a frozen and a tied parameter with its optimizer, and an
/// offload of both.
struct Training {
  explicit Training(Offload::Options options = Offload::Options{
                        .settings = {.enabled = true, .model = true, .optimizer = true}}) {
    options.warn = [this](const std::string& text) { warnings.push_back(text); };
    at::Tensor* all[] = {&wide, &narrow, &frozen, &tied};
    for (at::Tensor* parameter : all) parameters.push_back(*parameter);
    parameters.push_back(tied);  // a head that is the embedding, listed once more
    optimizer =
        std::make_unique<AdamW>(std::vector<ParameterGroup>{{.name = "llm",
                                                             .learning_rate = 0.1,
                                                             .weight_decay = 0.01,
                                                             .names = {"wide", "narrow", "tied"},
                                                             .parameters = {wide, narrow, tied}}},
                                AdamWSettings{});
    gradients = std::make_unique<Float32Gradients>(optimizer->groups());
    offload = std::make_unique<Offload>(
        std::move(options), [this] { return parameters; },
        std::make_unique<test::RecordingMover>(recording));
    offload->set_optimizer([this] { return optimizer->tensors(); });
  }

  at::Tensor loss() const {
    const at::Tensor hidden = at::matmul(frozen, wide).tanh();
    return at::matmul(hidden, narrow.to(at::kFloat)).sum() + (tied * tied).sum();
  }
  void step() {
    torch::autograd::backward({loss()}, {});
    gradients->publish();
    optimizer->step(1.0);
    for (const at::Tensor& tensor : parameters) tensor.mutable_grad().reset();
  }
  std::vector<at::Tensor> values() const {
    std::vector<at::Tensor> copies;
    for (const at::Tensor& tensor : parameters) copies.push_back(tensor.detach().clone());
    for (const at::Tensor& tensor : optimizer->tensors()) copies.push_back(tensor.clone());
    return copies;
  }

  static at::Tensor grid(int64_t rows, int64_t columns, double step) {
    return (at::arange(rows * columns).to(at::kFloat) * step).reshape({rows, columns}).clone();
  }

  at::Tensor wide = grid(4, 3, 0.01).requires_grad_();
  at::Tensor narrow = grid(3, 2, 0.3).to(at::kBFloat16).requires_grad_();
  at::Tensor frozen = grid(2, 4, 0.2);
  at::Tensor tied = grid(5, 2, 0.1).t().contiguous().requires_grad_();
  std::vector<at::Tensor> parameters;
  std::vector<std::string> warnings;
  std::unique_ptr<AdamW> optimizer;
  std::unique_ptr<Float32Gradients> gradients;
  std::shared_ptr<test::Recording> recording = std::make_shared<test::Recording>();
  std::unique_ptr<Offload> offload;
};

void expect_same(const std::vector<at::Tensor>& left, const std::vector<at::Tensor>& right) {
  ASSERT_EQ(left.size(), right.size());
  for (size_t i = 0; i < left.size(); ++i) {
    EXPECT_EQ(left[i].scalar_type(), right[i].scalar_type()) << i;
    EXPECT_TRUE(at::equal(left[i], right[i])) << i;
  }
}

// wide, narrow, frozen, tied; masters of narrow; two averages of wide, narrow and tied.
constexpr int kNumParameters = 4, kNumOptimizer = 7;

}  // namespace

TEST(Offload, MovesEveryTensorOnceAndBringsEveryBitBack) {
  Training training;
  training.step();
  const std::vector<at::Tensor> before = training.values();
  {
    OffloadScope scope(training.offload.get());
    EXPECT_EQ(training.recording->num_away(), kNumParameters + kNumOptimizer);
    EXPECT_EQ(training.recording->num_cache_releases, 1) << "the engine finds the memory";
    // readable meanwhile, by the same handles: the sync takes the weights from here
    expect_same(training.values(), before);
    training.recording->push("rollout");
    scope.restore();
  }
  EXPECT_THAT(training.recording->events, ElementsAre("out", "rollout", "back"));
  EXPECT_EQ(training.recording->num_out, kNumParameters + kNumOptimizer);
  EXPECT_EQ(training.recording->num_back, kNumParameters + kNumOptimizer);
  EXPECT_EQ(training.recording->num_away(), 0);
  expect_same(training.values(), before);
}

TEST(Offload, KeepsTheIdentityOfParameters) {
  Training training;
  const auto implementations = [&] {
    std::vector<const void*> found;
    for (const at::Tensor& tensor : training.parameters)
      found.push_back(tensor.unsafeGetTensorImpl());
    for (const at::Tensor& tensor : training.optimizer->tensors())
      found.push_back(tensor.unsafeGetTensorImpl());
    return found;
  };
  training.wide.mutable_grad() = at::full({4, 3}, 0.5);
  const at::Tensor gradient = training.wide.grad();
  const std::vector<const void*> before = implementations();
  {
    OffloadScope scope(training.offload.get());
    EXPECT_EQ(training.recording->num_away(), kNumParameters + kNumOptimizer + 1)
        << "a gradient takes memory too";
    EXPECT_EQ(implementations(), before);
    scope.restore();
  }
  EXPECT_EQ(implementations(), before);
  EXPECT_TRUE(training.wide.grad().is_same(gradient));
  EXPECT_TRUE(at::equal(gradient, at::full({4, 3}, 0.5)));
  EXPECT_FALSE(training.tied.grad().defined()) << "no gradient stays no gradient";
  EXPECT_TRUE(training.wide.requires_grad() && training.wide.is_leaf() &&
              !training.frozen.requires_grad());
  EXPECT_TRUE(training.optimizer->groups().front().parameters.front().is_same(training.wide));
}

TEST(Offload, MovesOnlyThePartsAskedFor) {
  Training model(Offload::Options{.settings = {.enabled = true, .model = true}});
  {
    OffloadScope scope(model.offload.get());
  }
  EXPECT_EQ(model.recording->num_out, kNumParameters);
  Training optimizer(Offload::Options{.settings = {.enabled = true, .optimizer = true}});
  {
    OffloadScope scope(optimizer.offload.get());
  }
  EXPECT_EQ(optimizer.recording->num_out, kNumOptimizer);
  Training nothing(Offload::Options{});
  {
    OffloadScope scope(nothing.offload.get());
  }
  EXPECT_EQ(nothing.recording->num_out, 0);
  OffloadScope without(nullptr);
  without.restore();
}

TEST(Offload, WorksWithoutAnOptimizer) {
  auto recording = std::make_shared<test::Recording>();
  const at::Tensor weight = at::ones({3});
  Offload offload(
      {.settings = {.enabled = true, .model = true, .optimizer = true}},
      [&] { return std::vector<at::Tensor>{weight}; },
      std::make_unique<test::RecordingMover>(recording));
  OffloadScope scope(&offload);
  EXPECT_EQ(recording->num_away(), 1);
  scope.restore();
}

TEST(Offload, NestedScopesAreOne) {
  Training training;
  OffloadScope outer(training.offload.get());
  {
    OffloadScope inner(training.offload.get());
    training.recording->push("inner");
    inner.restore();
  }
  try {
    OffloadScope inner(training.offload.get());
    throw Interrupted{};
  } catch (const Interrupted&) {
  }
  EXPECT_EQ(training.recording->num_away(), kNumParameters + kNumOptimizer)
      << "still away: the outer scope is open";
  outer.restore();
  EXPECT_THAT(training.recording->events, ElementsAre("out", "inner", "back"));
  EXPECT_EQ(training.recording->num_out, kNumParameters + kNumOptimizer);
}

TEST(Offload, RestoresAfterAnErrorOfAnyKind) {
  Training training;
  const std::vector<at::Tensor> before = training.values();
  const auto fail = [&](auto error) {
    OffloadScope scope(training.offload.get());
    training.recording->push("generate");
    throw error;
  };
  EXPECT_THROW(fail(std::bad_alloc()), std::bad_alloc);
  EXPECT_THROW(fail(Interrupted{}), Interrupted);
  EXPECT_EQ(training.recording->num_away(), 0);
  EXPECT_THAT(training.recording->events,
              ElementsAre("out", "generate", "back", "out", "generate", "back"));
  expect_same(training.values(), before);
}

TEST(Offload, AFullHostMemoryLeavesEverythingInItsPlaceAndIsTold) {
  Training training;
  const std::vector<at::Tensor> before = training.values();
  training.recording->fail_out_at = 5;
  const UserError error =
      test::catch_user_error([&] { OffloadScope scope(training.offload.get()); });
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
  const Problem& problem = error.problems().front();
  EXPECT_THAT(problem.what, HasSubstr("5 of 11 tensors"));
  EXPECT_THAT(problem.what, HasSubstr("no host memory left"));
  EXPECT_THAT(problem.fix, HasSubstr("offload.offload_optimizer"));
  EXPECT_EQ(training.recording->num_away(), 0);
  expect_same(training.values(), before);
  training.recording->fail_out_at = -1;
  {
    OffloadScope scope(training.offload.get());
    EXPECT_EQ(training.recording->num_away(), kNumParameters + kNumOptimizer)
        << "the scope that failed is not open";
    scope.restore();
  }
  expect_same(training.values(), before);
}

TEST(Offload, AFullDeviceIsToldAndLosesNoValue) {
  Training training;
  const std::vector<at::Tensor> before = training.values();
  training.recording->fail_back_at = 3;
  const UserError error = test::catch_user_error([&] {
    OffloadScope scope(training.offload.get());
    scope.restore();
  });
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
  EXPECT_THAT(error.problems().front().what, HasSubstr("8 of 11 tensors"));
  EXPECT_THAT(error.problems().front().what, HasSubstr("device out of memory"));
  EXPECT_THAT(error.problems().front().fix, HasSubstr("gpu_memory_utilization"));
  EXPECT_EQ(training.recording->num_away(), 8);
  EXPECT_TRUE(training.warnings.empty()) << "told once, by the error";
  expect_same(training.values(), before);  // safe in host memory: a checkpoint can still be written
  training.recording->fail_back_at = -1;
  {
    OffloadScope scope(training.offload.get());
    EXPECT_EQ(training.recording->num_away(), kNumParameters + kNumOptimizer)
        << "what had returned goes again, the rest is away already";
    scope.restore();
  }
  EXPECT_EQ(training.recording->num_away(), 0);
  expect_same(training.values(), before);
}

TEST(Offload, AFullDeviceDuringAnErrorDoesNotHideTheError) {
  Training training;
  training.recording->fail_back_at = 0;
  try {
    OffloadScope scope(training.offload.get());
    throw Interrupted{};
  } catch (const Interrupted&) {
  }
  ASSERT_EQ(training.warnings.size(), 1u);
  EXPECT_THAT(training.warnings.front(), HasSubstr("could not return to the device"));
  EXPECT_THAT(training.warnings.front(), HasSubstr("11 of 11 tensors"));
}

TEST(Offload, TrainingGoesOnAsIfNothingHadMoved) {
  Training with, without;
  for (int i = 0; i < 4; ++i) {
    {
      OffloadScope scope(with.offload.get());
      scope.restore();
    }
    with.step();
    without.step();
    expect_same(with.values(), without.values());
  }
  EXPECT_FALSE(at::equal(with.wide, Training().wide)) << "the steps are steps";
  EXPECT_EQ(with.recording->num_away(), 0);
}

// A graph that lives on holds its gradient accumulators, the hooks of bfloat16 gradients among
// them.
TEST(Offload, AGraphFromBeforeStillFindsItsParameters) {
  Training with, without;
  const at::Tensor loss = with.loss();
  {
    OffloadScope scope(with.offload.get());
    scope.restore();
  }
  const at::Tensor later = with.loss() + with.loss();
  torch::autograd::backward({later}, {});
  torch::autograd::backward({without.loss() + without.loss()}, {});
  with.gradients->publish();
  without.gradients->publish();
  for (const auto& [left, right] :
       {std::pair{with.wide, without.wide}, std::pair{with.narrow, without.narrow},
        std::pair{with.tied, without.tied}}) {
    ASSERT_TRUE(left.grad().defined());
    EXPECT_TRUE(at::equal(left.grad(), right.grad()));
  }
}

TEST(Offload, RefusesViewsAsABug) {
  const at::Tensor whole = at::zeros({4, 2});
  const at::Tensor lasting = at::zeros({6});
  std::vector<at::Tensor> tensors{whole.select(0, 1)};
  const auto recording = std::make_shared<test::Recording>();
  Offload offload(
      {.settings = {.enabled = true, .model = true}}, [&] { return tensors; },
      std::make_unique<test::RecordingMover>(recording));
  EXPECT_THROW(OffloadScope scope(&offload), InternalError) << "a part of a tensor";
  tensors = {lasting.view({2, 3})};
  EXPECT_THROW(OffloadScope scope(&offload), InternalError)
      << "another shape of a tensor that lives on";
  tensors = {whole};
  {
    const at::Tensor alias = whole.detach();
    EXPECT_THROW(OffloadScope scope(&offload), InternalError)
        << "another owner looks at the same memory";
  }
  tensors = {whole, whole.detach()};
  EXPECT_THROW(OffloadScope scope(&offload), InternalError) << "two of the list share memory";
  tensors = {whole};
  OffloadScope scope(&offload);
  EXPECT_EQ(recording->num_away(), 1);
  scope.restore();
}

TEST(Offload, TheRealMoverFindsNothingToDoOnACpu) {
  const std::unique_ptr<TensorMover> mover = make_tensor_mover();
  EXPECT_FALSE(mover->is_on_device(at::zeros({2})));
  const at::Tensor turned = at::arange(6).reshape({2, 3}).t();
  const at::Tensor copy = mover->to_host(turned);
  EXPECT_TRUE(at::equal(copy, turned));
  EXPECT_EQ(copy.strides(), turned.strides());
  EXPECT_NE(copy.data_ptr(), turned.data_ptr());
  const at::Tensor back = mover->to_device(copy, at::kCPU);
  EXPECT_TRUE(at::equal(back, turned));
  EXPECT_EQ(back.strides(), turned.strides());
  mover->release_cached(at::kCPU);
  const at::Tensor weight = at::zeros({2});
  Offload offload(
      {.settings = {.enabled = true, .model = true}},
      [&] { return std::vector<at::Tensor>{weight}; }, make_tensor_mover());
  const void* const data = weight.data_ptr();
  OffloadScope scope(&offload);
  EXPECT_EQ(weight.data_ptr(), data);
}

}  // namespace rematch
