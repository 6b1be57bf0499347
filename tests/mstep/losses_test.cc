#include "learn/mstep/loss/losses.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "learn/mstep/loss/coord_logits.h"
#include "mstep/loss_targets.h"
#include "mstep/toy_rows.h"

namespace rematch {
namespace {

using test::random_tensor;

constexpr int64_t kVocab = 1040;

LossOptions options_with_ids() {
  LossOptions options;
  // not ordered as the vocabulary
  for (int i = 0; i < kNumBins; ++i)
    options.coord_token_ids[static_cast<size_t>(i)] = kVocab - 1 - i;
  return options;
}

RowSupervision mixed_supervision() {
  return {{test::labels({1, 4, 6}, {7, 3, 0}),
           test::coord_slots({2, 3, 5}, {0, 999, 421}, {true, false, false})}};
}

Segment segment_of(std::vector<int> labels, std::vector<Slot> slots) {
  Segment segment;
  segment.token_ids.assign(labels.size(), 1);
  segment.labels = std::move(labels);
  if (!slots.empty()) segment.slots[kCoordSlots] = std::move(slots);
  return segment;
}

}  // namespace

// spec: pack-07 select-15
TEST(RowSupervision, ShiftsPositionsByThePrecedingSegments) {
  PackedRow row;
  row.segments.push_back(
      std::make_shared<Segment>(segment_of({-100, 5, -100}, {{2, 40, SlotSource::kPrefix}})));
  row.segments.push_back(
      std::make_shared<Segment>(segment_of({-100, -100, 6, 7}, {{1, 999, SlotSource::kAppend}})));
  const RowSupervision supervision = RowSupervision::from(row);
  ASSERT_EQ(supervision.by_kind.size(), 2u);
  const KindTargets &ce = supervision.by_kind.at(kLabels),
                    &coord = supervision.by_kind.at(kCoordSlots);
  EXPECT_EQ(ce.positions, (std::vector<int64_t>{1, 5, 6}));
  EXPECT_EQ(ce.values, (std::vector<int64_t>{5, 6, 7}));
  EXPECT_EQ(coord.positions, (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(coord.values, (std::vector<int64_t>{40, 999}));
  EXPECT_EQ(coord.is_prefix, (std::vector<bool>{true, false}));
}

TEST(RowSupervision, RefusesALabelWithoutAPositionBefore) {
  PackedRow row;
  row.segments.push_back(std::make_shared<Segment>(segment_of({-100, 5}, {})));
  // its logits would be those of the segment before
  row.segments.push_back(std::make_shared<Segment>(segment_of({5, 5}, {})));
  EXPECT_THROW(RowSupervision::from(row), InternalError);
}

TEST(CoordTargets, AreCutAtTheEdgesWithoutWrapping) {
  LossOptions options;
  options.settings["target_sigma"] = 3.0;
  const at::Tensor targets_KB = coord_targets_KB(at::tensor({0, 500, 999}, at::kLong), options);
  EXPECT_EQ(targets_KB.scalar_type(), at::kDouble);
  EXPECT_TRUE(at::allclose(targets_KB.sum(1), at::ones({3}, at::kDouble), 0, 1e-12));
  EXPECT_LT(targets_KB[0][999].item<double>(), 1e-300);
  EXPECT_NEAR(targets_KB[0][0].item<double>() / targets_KB[1][500].item<double>(),
              2.0 / (1.0 + targets_KB[1][500].item<double>()), 1e-9);
  EXPECT_TRUE(at::equal(targets_KB[0].flip({0}), targets_KB[2]));
}

TEST(CoordTargets, AreZeroBeyondTheTruncation) {
  LossOptions options;
  options.settings["target_truncate"] = 2.0;
  const at::Tensor target_B = coord_targets_KB(at::tensor({500}, at::kLong), options)[0];
  EXPECT_EQ(target_B.count_nonzero().item<int64_t>(), 5);
  EXPECT_GT(target_B[498].item<double>(), 0.0);
  EXPECT_NEAR(target_B.sum().item<double>(), 1.0, 1e-12);
}

TEST(RowLoss, WithoutSupervisionIsZeroAndMayBeDifferentiated) {
  at::Tensor hidden_TH =
      at::full({4, kVocab}, std::numeric_limits<float>::quiet_NaN()).requires_grad_();
  const RowLoss loss = row_loss(hidden_TH, {}, test::identity(), options_with_ids(), {});
  EXPECT_EQ(loss.total.item<float>(), 0.0f);
  EXPECT_TRUE(loss.by_kind.empty());
  torch::autograd::backward({loss.total}, {});
  EXPECT_EQ(hidden_TH.grad().abs().sum().item<float>(), 0.0f);
}

TEST(RowLoss, KeepsANaNOfCrossEntropyAndSanitisesThatOfASlot) {
  const at::Tensor nan_TV = at::full({3, kVocab}, std::numeric_limits<float>::quiet_NaN());
  const RowLoss ce =
      row_loss(nan_TV, {{test::labels({1}, {2})}}, test::identity(), options_with_ids(), {});
  EXPECT_TRUE(std::isnan(ce.by_kind.of("ce").sum));
  EXPECT_TRUE(ce.total.isnan().item<bool>());
  const RowLoss slot = row_loss(nan_TV, {{test::coord_slots({1}, {2}, {true})}}, test::identity(),
                                options_with_ids(), {});
  EXPECT_NEAR(slot.details.of("soft_ce").sum, std::log(1000.0), 1e-9);
  EXPECT_NEAR(slot.details.of("gate").sum, std::log(kVocab / 1000.0), 1e-7);
  EXPECT_EQ(slot.details.of("coord_tail").sum, 0.0);
  EXPECT_NEAR(slot.details.of("coord_prefix").sum, slot.by_kind.of("coord").sum, 1e-12);
}

TEST(RowLoss, ReadsTheLogitsOneBeforeTheToken) {
  at::Tensor logits_TV = at::zeros({4, kVocab});
  logits_TV[2][9] = 30.0f;
  const auto loss_at = [&](int64_t position) {
    return row_loss(logits_TV, {{test::labels({position}, {9})}}, test::identity(),
                    options_with_ids(), {})
        .by_kind.of("ce")
        .sum;
  };
  EXPECT_LT(loss_at(3), 1e-6);
  EXPECT_GT(loss_at(2), 1.0);
}

TEST(RowLoss, CountsArgmaxHits) {
  at::Tensor logits_TV = at::zeros({4, kVocab});
  logits_TV[0][9] = 1.0f;
  logits_TV[1][8] = 1.0f;
  // the last row is a tie: the first id wins
  const RowSupervision supervision{{test::labels({1, 2, 3}, {9, 9, 0})}};
  const RowLoss loss = row_loss(logits_TV, supervision, test::identity(), options_with_ids(), {});
  EXPECT_EQ(loss.details.of(kCorrectTokens).sum, 2);
}

TEST(RowLoss, OnlySupervisedPositionsReachTheHead) {
  int64_t num_positions = 0;
  Head head = test::identity();
  head.logits_KV = [&](const at::Tensor& hidden_KH) {
    num_positions += hidden_KH.size(0);
    return hidden_KH;
  };
  row_loss(random_tensor({400, kVocab}, 1), mixed_supervision(), head, options_with_ids(), {});
  EXPECT_EQ(num_positions, 6);
}

TEST(RowLoss, DoesNotDependOnTheChunksAndTrainsAHeadOnFrozenHiddenStates) {
  const at::Tensor hidden_TH = random_tensor({8, 12}, 2);
  const auto weight_gradient = [&](int64_t chunk_positions, bool hidden_needs_grad) {
    at::Tensor weight_VH = random_tensor({kVocab, 12}, 3).requires_grad_();
    LossOptions options = options_with_ids();
    options.chunk_positions = chunk_positions;
    const at::Tensor leaf_TH = hidden_TH.clone().requires_grad_(hidden_needs_grad);
    const RowLoss loss = row_loss(leaf_TH, mixed_supervision(), test::product_with(weight_VH),
                                  options, {{kLabels, 0.3}, {kCoordSlots, 0.2}});
    EXPECT_NEAR(loss.total.item<double>(),
                0.3 * loss.by_kind.of("ce").sum + 0.2 * loss.by_kind.of("coord").sum, 1e-5);
    torch::autograd::backward({loss.total}, {});
    return weight_VH.grad();
  };
  const at::Tensor whole = weight_gradient(1024, true);
  EXPECT_TRUE(at::allclose(weight_gradient(1, true), whole, 1e-5, 1e-7));
  EXPECT_TRUE(at::allclose(weight_gradient(2, false), whole, 1e-5, 1e-7));
  EXPECT_TRUE(at::allclose(weight_gradient(1024, false), whole, 1e-5, 1e-7));
}

TEST(RowLoss, GradientEqualsFiniteDifferences) {
  at::Tensor weight_VH = random_tensor({kVocab, 6}, 4);
  at::Tensor hidden_TH = random_tensor({8, 6}, 5).requires_grad_();
  LossOptions options = options_with_ids();
  options.settings = {{"temperature_coord", 1.3}, {"target_sigma", 20.0}, {"w1_weight", 3.0}};
  const auto loss_of = [&](const at::Tensor& h_TH) {
    return row_loss(h_TH, mixed_supervision(), test::product_with(weight_VH), options,
                    {{kLabels, 0.5}, {kCoordSlots, 0.25}});
  };
  const auto value_of = [&](const at::Tensor& h_TH) {  // the sums are float64, the scalar is not
    const RowLoss loss = loss_of(h_TH);
    return 0.5 * loss.by_kind.of("ce").sum + 0.25 * loss.by_kind.of("coord").sum;
  };
  torch::autograd::backward({loss_of(hidden_TH).total}, {});
  const at::NoGradGuard no_grad;
  for (int64_t i = 0; i < hidden_TH.numel(); i += 3) {
    const double h = 4e-3;
    at::Tensor up = hidden_TH.clone(), down = hidden_TH.clone();
    up.view(-1)[i] += h;
    down.view(-1)[i] -= h;
    EXPECT_NEAR(hidden_TH.grad().view(-1)[i].item<double>(),
                (value_of(up) - value_of(down)) / (2 * h), 1e-3)
        << i;
  }
}

TEST(RowLoss, ComputesInFloat32WhateverTheModelsType) {
  const at::Tensor hidden_TH = random_tensor({8, kVocab}, 6).to(at::kBFloat16);
  at::Tensor leaf_TH = hidden_TH.clone().requires_grad_();
  const RowLoss half =
      row_loss(leaf_TH, mixed_supervision(), test::identity(), options_with_ids(), {});
  const RowLoss single = row_loss(hidden_TH.to(at::kFloat), mixed_supervision(), test::identity(),
                                  options_with_ids(), {});
  EXPECT_EQ(half.total.scalar_type(), at::kFloat);
  for (const char* kind : {"ce", "coord"})
    EXPECT_EQ(half.by_kind.of(kind).sum, single.by_kind.of(kind).sum) << kind;
  torch::autograd::backward({half.total}, {});
  EXPECT_EQ(leaf_TH.grad().scalar_type(), at::kBFloat16);
}

TEST(RowLoss, RefusesPositionsOutsideTheRow) {
  const at::Tensor hidden_TH = at::zeros({3, kVocab});
  for (const int64_t position : {0, 3}) {
    EXPECT_THROW(row_loss(hidden_TH, {{test::labels({position}, {1})}}, test::identity(),
                          options_with_ids(), {}),
                 InternalError);
  }
}

}  // namespace rematch
