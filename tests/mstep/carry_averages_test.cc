// AdamW that starts with the averages of another run.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "mstep/optim/adamw.h"
#include "support/capture.h"

namespace rematch {
namespace {

using testing::HasSubstr;
using State = std::vector<std::pair<std::string, at::Tensor>>;

/// Two parameters, "a" of three values and "b" of two, whose values and gradients follow from a
/// number.
struct Small {
  at::Tensor a, b;
  AdamW optimizer;

  explicit Small(at::ScalarType dtype)
      : a(at::arange(3, dtype).requires_grad_()),
        b(at::ones({2}, dtype).requires_grad_()),
        optimizer({{"llm", 1e-2, 0.1, {"a", "b"}, {a, b}}}, {}) {}

  void step(int number) {
    a.mutable_grad() = at::full({3}, 1.0 + number, at::kFloat);
    b.mutable_grad() = at::full({2}, 0.5 - number, at::kFloat);
    optimizer.step(1.0);
  }
  State state() const {
    State copies;
    for (const auto& [name, tensor] : optimizer.state()) copies.emplace_back(name, tensor.clone());
    return copies;
  }
};

}  // namespace

TEST(CarryAverages, TheNextStepIsTheOneThatTheOtherRunWouldMake) {
  Small first(at::kFloat), second(at::kFloat);
  for (int i = 0; i < 5; ++i) first.step(i);
  {
    const at::NoGradGuard no_grad;
    second.a.copy_(first.a);
    second.b.copy_(first.b);
  }
  second.optimizer.carry_averages(first.state(), first.optimizer.num_steps());
  EXPECT_EQ(second.optimizer.num_steps(), 0) << "the schedule starts anew";
  EXPECT_TRUE(at::equal(second.a, first.a)) << "weights stay";
  first.step(5);
  second.step(5);
  EXPECT_TRUE(at::equal(first.a, second.a));
  EXPECT_TRUE(at::equal(first.b, second.b));
}

TEST(CarryAverages, LeaveTheMastersOfBfloat16Alone) {
  Small first(at::kBFloat16), second(at::kBFloat16);
  for (int i = 0; i < 5; ++i) first.step(i);
  const State before = second.state(), theirs = first.state();
  second.optimizer.carry_averages(theirs, 5);
  for (const auto& [name, tensor] : second.state()) {
    const State& from = name.ends_with(".master") ? before : theirs;
    const auto same = std::find_if(from.begin(), from.end(),
                                   [&](const auto& item) { return item.first == name; });
    EXPECT_TRUE(name.ends_with(".num_steps") ||
                (same != from.end() && at::equal(tensor, same->second)))
        << name;
  }
}

TEST(CarryAverages, SurviveACheckpointOfTheNewRun) {
  Small first(at::kFloat), second(at::kFloat), resumed(at::kFloat);
  for (int i = 0; i < 5; ++i) first.step(i);
  second.optimizer.carry_averages(first.state(), 5);
  second.step(0);
  {
    const at::NoGradGuard no_grad;
    resumed.a.copy_(second.a);
    resumed.b.copy_(second.b);
  }
  resumed.optimizer.load_state(second.state(), second.optimizer.num_steps());
  second.step(1);
  resumed.step(1);
  EXPECT_TRUE(at::equal(second.a, resumed.a));
  EXPECT_TRUE(at::equal(second.b, resumed.b));
}

TEST(CarryAverages, NamesEveryParameterThatDoesNotFitAndChangesNothing) {
  Small first(at::kFloat), second(at::kFloat);
  first.step(0);
  const State others = {
      {"a.exp_avg", at::ones({4})}, {"a.exp_avg_sq", at::ones({4})}, {"c.exp_avg", at::ones({1})}};
  const UserError error =
      test::catch_user_error([&] { second.optimizer.carry_averages(others, 1); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_THAT(
      error.problems()[0].what,
      HasSubstr(
          "2 of 2 trained parameters: a has another shape (4 values, not 3); b is not there"));
  EXPECT_EQ(error.problems()[0].where, "training.resume_optimizer_from");
  State more = first.state();
  more.emplace_back("c.exp_avg", at::ones({1}));
  EXPECT_NO_THROW(second.optimizer.carry_averages(more, 1))
      << "what is not trained here is left out";
}

}  // namespace rematch
