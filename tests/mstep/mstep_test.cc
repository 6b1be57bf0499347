// The M-step on a toy model: an embedding and a linear head, so that every number can be followed.
#include "learn/mstep/mstep.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "learn/mstep/make_gradient_sum.h"
#include "mstep/loss_targets.h"
#include "mstep/toy_rows.h"

namespace rematch {
namespace {

using test::kHidden;
using test::kVocab;
using test::random_tensor;
using test::segment;

struct Toy {
  at::Tensor embedding_VH = random_tensor({kVocab, kHidden}, 1);
  at::Tensor head_VH = random_tensor({kVocab, kHidden}, 2);
  int num_forwards = 0;

  explicit Toy(at::ScalarType dtype = at::kFloat) {
    embedding_VH = embedding_VH.to(dtype).requires_grad_();
    head_VH = head_VH.to(dtype).requires_grad_();
  }
  RowModel model() {
    return {.hidden_TH =
                [this](const PackedRow& row) {
                  ++num_forwards;
                  std::vector<int64_t> ids;
                  for (const auto& segment : row.segments)
                    ids.insert(ids.end(), segment->token_ids.begin(), segment->token_ids.end());
                  return embedding_VH.index_select(0, at::tensor(ids, at::kLong));
                },
            .head = test::product_with(head_VH)};
  }
  std::vector<ParameterGroup> groups(double rate = 0.01) const {
    return {{"llm", rate, 0.0, {"embedding", "head"}, {embedding_VH, head_VH}}};
  }
};

MStep::Options step_options() {
  MStep::Options options;
  for (int i = 0; i < kNumBins; ++i) options.loss.coord_token_ids[static_cast<size_t>(i)] = i + 10;
  options.max_grad_norm = 0;
  options.learning_rate = 0.01;
  return options;
}

Schedule constant() { return Schedule({.type = ScheduleType::kConstant}); }

std::shared_ptr<const Segment> unsupervised_segment() {
  auto made = std::make_shared<Segment>(*segment(1));
  made->labels.assign(made->token_ids.size(), kIgnoreLabel);
  made->slots.clear();
  return made;
}

// One row for each inner list of sample ids.
Window window_of(const std::vector<std::vector<int64_t>>& rows) {
  Window window;
  for (const std::vector<int64_t>& ids : rows) {
    PackedRow& row = window.rows.emplace_back();
    for (const int64_t id : ids) row.segments.push_back(segment(id));
  }
  return window;
}

double metric(const MetricsBag& bag, const char* name) {
  EXPECT_EQ(bag.values(name).size(), 1u) << name;
  return bag.values(name).empty() ? std::nan("") : bag.values(name)[0];
}

// Gradient of a step: Adam's first moment after one update is (1 − beta1) times it.
std::vector<at::Tensor> gradients(const Window& window, const MStep::Options& options,
                                  MetricsBag& metrics, at::ScalarType dtype = at::kFloat) {
  Toy toy(dtype);
  MStep step(toy.model(), make_gradient_sum(toy.groups()), {.beta1 = 0.0}, constant(), options);
  step.run(window, metrics);
  std::vector<at::Tensor> found;
  for (const auto& [name, tensor] : step.optimizer().state()) {
    if (name.ends_with(".exp_avg")) found.push_back(tensor.clone());
  }
  return found;
}

double relative_difference(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, (a[i] - b[i]).norm().item<double>() / b[i].norm().item<double>());
  return worst;
}

}  // namespace

TEST(MStep, TheGradientOfAWindowDoesNotDependOnItsSplitIntoRows) {
  MetricsBag one_bag, other_bag;
  const auto one = gradients(window_of({{0, 1, 2, 3}}), step_options(), one_bag);
  ASSERT_EQ(one.size(), 2u);
  for (const auto& rows : std::vector<std::vector<std::vector<int64_t>>>{
           {{0}, {1}, {2}, {3}}, {{0, 1}, {2, 3}}, {{3}, {0, 2, 1}}}) {
    MetricsBag bag;
    EXPECT_LE(relative_difference(gradients(window_of(rows), step_options(), bag), one), 1e-6);
    for (const char* name :
         {"loss", "loss/ce", "loss/coord", "loss/coord_prefix", "loss/coord_tail", "grad_norm"}) {
      EXPECT_NEAR(metric(bag, name), metric(one_bag, name), 1e-6 * metric(one_bag, name)) << name;
    }
  }
  // Only the sum is the same: a window with another sample is not.
  EXPECT_GT(
      relative_difference(gradients(window_of({{0, 1, 2, 4}}), step_options(), other_bag), one),
      1e-3);
}

TEST(MStep, RowNormalisationAveragesTheMeansOfTheRows) {
  MStep::Options options = step_options();
  options.normalization = LossNormalization::kRow;
  MetricsBag both, first, second;
  const auto gradient = gradients(window_of({{0}, {2, 3}}), options, both);
  const auto gradient_first = gradients(window_of({{0}}), options, first);
  const auto gradient_second = gradients(window_of({{2, 3}}), options, second);
  for (const char* name : {"loss", "loss/ce", "loss/coord"}) {
    EXPECT_NEAR(metric(both, name), (metric(first, name) + metric(second, name)) / 2,
                1e-6 * metric(both, name))
        << name;
  }
  std::vector<at::Tensor> mean;
  for (size_t i = 0; i < gradient.size(); ++i)
    mean.push_back((gradient_first[i] + gradient_second[i]) / 2);
  EXPECT_LE(relative_difference(gradient, mean), 1e-6);
  // window weighs tokens
  EXPECT_GT(
      relative_difference(gradient, gradients(window_of({{0}, {2, 3}}), step_options(), first)),
      1e-3);
}

TEST(LossScales, DivideByTheCountsOfTheWindowOrTheRow) {
  const std::vector<RowSupervision> rows = {
      {{test::labels({1, 2}, {1, 1})}},
      {{test::labels({1, 2, 3}, {1, 1, 1}), test::coord_slots({4}, {0}, {true})}}};
  const auto by_window = loss_scales(rows, LossNormalization::kWindow);
  EXPECT_DOUBLE_EQ(by_window[0].at("ce"), 1.0 / 5);
  EXPECT_DOUBLE_EQ(by_window[1].at("ce"), 1.0 / 5);
  EXPECT_DOUBLE_EQ(by_window[0].at("coord"), 1.0);
  const auto by_row = loss_scales(rows, LossNormalization::kRow);
  EXPECT_DOUBLE_EQ(by_row[0].at("ce"), 1.0 / 4);
  EXPECT_DOUBLE_EQ(by_row[1].at("ce"), 1.0 / 6);
  EXPECT_EQ(by_row[0].at("coord"), 0.0);
  EXPECT_DOUBLE_EQ(by_row[1].at("coord"), 1.0 / 2);
  const std::vector<LossScale> of_nothing =
      loss_scales({RowSupervision{}}, LossNormalization::kWindow);
  for (const auto& [kind, scale] : of_nothing.at(0)) EXPECT_EQ(scale, 0.0) << kind;
}

TEST(MStep, ARowWithoutSupervisionCostsAndChangesNothing) {
  Window window = window_of({{0, 1}});
  MetricsBag with, without;
  const auto expected = gradients(window, step_options(), without);
  window.rows.emplace_back().segments.push_back(unsupervised_segment());
  EXPECT_EQ(relative_difference(gradients(window, step_options(), with), expected), 0.0);
  EXPECT_EQ(metric(with, "loss"), metric(without, "loss"));

  Toy toy;
  MStep step(toy.model(), make_gradient_sum(toy.groups()), {}, constant(), step_options());
  Window empty;
  empty.rows.push_back(window.rows.back());
  MetricsBag metrics;
  const at::Tensor before = toy.head_VH.detach().clone();
  step.run(empty, metrics);
  EXPECT_EQ(toy.num_forwards, 0);
  EXPECT_EQ(metric(metrics, "loss"), 0.0);
  EXPECT_EQ(metric(metrics, "grad_norm"), 0.0);
  EXPECT_TRUE(at::equal(toy.head_VH, before));
}

TEST(MStep, LossIsTheSumOfItsTermsAndFallsWhenAWindowIsUsedAgain) {
  Toy toy;
  MStep step(toy.model(), make_gradient_sum(toy.groups(0.05)), {},
             Schedule({.type = ScheduleType::kLinear}, 0.01, 100), step_options());
  const Window window = window_of({{1, 2}, {3}});
  double first = 0, last = 0;
  for (int i = 0; i < 20; ++i) {
    MetricsBag metrics;
    step.run(window, metrics);
    last = metric(metrics, "loss");
    if (i == 0) first = last;
    EXPECT_NEAR(last, metric(metrics, "loss/ce") + metric(metrics, "loss/coord"), 1e-12);
    EXPECT_NEAR(metric(metrics, "learning_rate"), 0.01 * (100 - i) / 100, 1e-15);
    EXPECT_EQ(metrics.values("time/forward_s").size(), 2u);
    // two rows, and the wait for their sums
    EXPECT_EQ(metrics.values("time/backward_s").size(), 3u);
    EXPECT_EQ(metrics.values("time/optimizer_s").size(), 1u);
  }
  EXPECT_EQ(step.num_steps(), 20);
  EXPECT_LT(last, 0.7 * first);
  EXPECT_FALSE(toy.head_VH.grad().defined());  // gradients take no memory between steps
}

TEST(MStep, ClipsTheGradientOnceOverAllParameters) {
  MStep::Options options = step_options();
  MetricsBag free_bag, clipped_bag;
  const auto free = gradients(window_of({{0, 1}}), options, free_bag);
  options.max_grad_norm = metric(free_bag, "grad_norm") / 4;
  auto clipped = gradients(window_of({{0, 1}}), options, clipped_bag);
  // the norm before clipping
  EXPECT_EQ(metric(clipped_bag, "grad_norm"), metric(free_bag, "grad_norm"));
  for (at::Tensor& gradient : clipped) gradient = gradient * 4;
  EXPECT_LE(relative_difference(clipped, free), 1e-5);
}

TEST(MStep, AFrozenParameterHasNoGradientAndDoesNotChange) {
  Toy toy;
  toy.embedding_VH.set_requires_grad(false);
  const at::Tensor before = toy.embedding_VH.clone();
  const at::Tensor head_before = toy.head_VH.detach().clone();
  MStep step(toy.model(), make_gradient_sum({{"llm", 0.01, 0.0, {"head"}, {toy.head_VH}}}), {},
             constant(), step_options());
  MetricsBag metrics;
  step.run(window_of({{0}, {1}}), metrics);
  EXPECT_FALSE(toy.embedding_VH.grad().defined());
  EXPECT_TRUE(at::equal(toy.embedding_VH, before));
  EXPECT_FALSE(at::equal(toy.head_VH, head_before));
}

TEST(MStep, ANonFiniteLossStopsBeforeTheUpdateAndNamesTheSamples) {
  Toy toy;
  MStep step(toy.model(), make_gradient_sum(toy.groups()), {}, constant(), step_options());
  {
    const at::NoGradGuard no_grad;
    toy.embedding_VH[segment(2)->token_ids[0]].fill_(std::numeric_limits<float>::quiet_NaN());
  }
  const at::Tensor before = toy.head_VH.detach().clone();
  MetricsBag metrics;
  try {
    step.run(window_of({{0}, {1, 2}}), metrics);
    FAIL() << "a NaN was trained on";
  } catch (const NonFiniteLoss& error) {
    EXPECT_NE(error.problems()[0].where.find("sample 1"), std::string::npos);
    EXPECT_NE(error.problems()[0].where.find("sample 2"), std::string::npos);
    EXPECT_NE(error.problems()[0].what.find("nan"), std::string::npos);
  }
  EXPECT_TRUE(at::equal(toy.head_VH, before));
  EXPECT_EQ(step.num_steps(), 0);
  EXPECT_FALSE(toy.head_VH.grad().defined());  // row 0 had left one
}

TEST(MStep, ANonFiniteLossEndsTheWindowAtItsRow) {
  Toy toy;
  MStep step(toy.model(), make_gradient_sum(toy.groups()), {}, constant(), step_options());
  {
    const at::NoGradGuard no_grad;
    toy.embedding_VH[segment(2)->token_ids[0]].fill_(std::numeric_limits<float>::quiet_NaN());
  }
  MetricsBag metrics;
  EXPECT_THROW(step.run(window_of({{2}, {0}, {1}}), metrics), NonFiniteLoss);
  EXPECT_EQ(toy.num_forwards, 1);
}

TEST(MStep, ANonFiniteGradientAlsoStops) {
  Toy toy;
  RowModel model = toy.model();
  const auto hidden_TH = model.hidden_TH;
  model.hidden_TH = [&](const PackedRow& row) {  // the value is fine, its derivative is 0 · ∞
    const at::Tensor hidden = hidden_TH(row);
    return hidden + (hidden - hidden).sqrt();
  };
  MStep step(model, make_gradient_sum(toy.groups()), {}, constant(), step_options());
  MetricsBag metrics;
  EXPECT_THROW(step.run(window_of({{0}}), metrics), NonFiniteLoss);
  EXPECT_EQ(step.num_steps(), 0);
}

TEST(MStep, Bfloat16GradientsOfManyRowsAreSummedInFloat32) {
  std::vector<std::vector<int64_t>> split(64, std::vector<int64_t>{1});
  MetricsBag once_bag, split_bag;
  const auto once = gradients(window_of({{1}}), step_options(), once_bag, at::kBFloat16);
  // 64 equal rows: each share is the same bfloat16 number, and so is their mean when nothing is
  // rounded on the way.
  EXPECT_LE(relative_difference(
                gradients(window_of(split), step_options(), split_bag, at::kBFloat16), once),
            1e-5);
}

TEST(MStep, TwoRunsGiveTheSameBits) {
  MetricsBag a, b;
  const Window window = window_of({{0, 1}, {2}, {3}});
  EXPECT_EQ(relative_difference(gradients(window, step_options(), a),
                                gradients(window, step_options(), b)),
            0.0);
  EXPECT_EQ(metric(a, "loss"), metric(b, "loss"));
}

TEST(TeacherForcedLoss, GivesTheSumsOfARowWithoutAGraph) {
  Toy toy;
  MStep::Options options = step_options();
  PackedRow row;
  row.segments = {segment(0), segment(2)};
  const RowLoss loss = teacher_forced_loss(toy.model(), row, options.loss);
  EXPECT_FALSE(loss.total.requires_grad());
  EXPECT_EQ(loss.by_kind.of("ce").count, 2 + 5);
  EXPECT_EQ(loss.by_kind.of("coord").count, 1 + 3);
  EXPECT_EQ(loss.details.of("coord_prefix").count, 1 + 2);
  MStep step(toy.model(), make_gradient_sum(toy.groups()), {}, constant(), options);
  MetricsBag metrics;
  step.run({.rows = {row}}, metrics);
  EXPECT_NEAR(metric(metrics, "loss/ce"), loss.by_kind.of("ce").sum / 7, 1e-9);
  EXPECT_NEAR(metric(metrics, "loss/coord"), loss.by_kind.of("coord").sum / 4, 1e-9);
}

}  // namespace rematch
