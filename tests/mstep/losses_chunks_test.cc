// Chunks of the head: what is alive at once, and that gradients are those of the whole row.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "base/error.h"
#include "learn/mstep/loss/losses.h"
#include "mstep/loss_targets.h"
#include "mstep/toy_rows.h"
#include "nn/memory_meter.h"

namespace rematch {
namespace {

using test::random_tensor;

constexpr int64_t kTokens = 420, kHidden = 24, kWideVocab = 5000;
constexpr int64_t kLogitBytes = (kTokens - 1) * kWideVocab * 4;

LossOptions options_of(int64_t positions_per_chunk) {
  LossOptions options;
  for (int i = 0; i < kNumBins; ++i)
    options.coord_token_ids[static_cast<size_t>(i)] = static_cast<int>(kWideVocab) - 1 - i;
  options.chunk_bytes = positions_per_chunk * kWideVocab * 4;
  return options;
}

// Every position but the first is supervised, each third one as a coordinate.
RowSupervision supervise_all() {
  RowSupervision supervision;
  KindTargets &ce = supervision.by_kind[kLabels], &coord = supervision.by_kind[kCoordSlots];
  for (int64_t i = 1; i < kTokens; ++i) {
    if (i % 3 == 0) {
      coord.positions.push_back(i);
      coord.values.push_back(i * 37 % kNumBins);
      coord.is_prefix.push_back(i % 2 == 0);
    } else {
      ce.positions.push_back(i);
      ce.values.push_back(i * 11 % kWideVocab);
    }
  }
  return supervision;
}

struct Gradients {
  at::Tensor hidden, weight;
  double ce_sum = 0, coord_sum = 0;
};

// One matrix is embedding and head, as in checkpoints with tied weights.
Gradients tied_gradients(const LossOptions& options, const RowSupervision& supervision,
                         at::ScalarType dtype = at::kFloat) {
  at::Tensor weight_VH = (random_tensor({kWideVocab, kHidden}, 1) / 4).to(dtype).requires_grad_();
  const at::Tensor ids = at::arange(kTokens, at::kLong).mul_(7).remainder_(kWideVocab);
  const at::Tensor hidden_TH = at::embedding(weight_VH, ids).tanh();
  hidden_TH.retain_grad();
  const RowLoss loss = row_loss(hidden_TH, supervision, test::product_with(weight_VH), options,
                                {{kLabels, 0.01}, {kCoordSlots, 0.02}});
  torch::autograd::backward({loss.total}, {});
  return {hidden_TH.grad(), weight_VH.grad(), loss.by_kind.of(kLabels).sum,
          loss.by_kind.of(kCoordSlots).sum};
}

double relative_distance(const at::Tensor& found, const at::Tensor& wanted) {
  return ((found - wanted).to(at::kDouble).norm() / wanted.to(at::kDouble).norm()).item<double>();
}

}  // namespace

TEST(LossChunks, GiveTheGradientOfTheWholeRowToHiddenStatesAndATiedHead) {
  const RowSupervision supervision = supervise_all();
  const Gradients whole = tied_gradients(options_of(kTokens), supervision),
                  chunked = tied_gradients(options_of(10), supervision);
  EXPECT_LE(relative_distance(chunked.hidden, whole.hidden), 1e-6);
  EXPECT_LE(relative_distance(chunked.weight, whole.weight), 1e-6);
  EXPECT_NEAR(chunked.ce_sum, whole.ce_sum, 1e-9 * whole.ce_sum);
  EXPECT_NEAR(chunked.coord_sum, whole.coord_sum, 1e-9 * whole.coord_sum);
}

TEST(LossChunks, GiveTheGradientOfPlainCrossEntropyOverAllLogits) {
  RowSupervision supervision;
  KindTargets& ce = supervision.by_kind[kLabels];
  for (int64_t i = 1; i < kTokens; ++i) {
    ce.positions.push_back(i);
    ce.values.push_back(i * 11 % kWideVocab);
  }
  const Gradients chunked = tied_gradients(options_of(10), supervision);
  at::Tensor weight_VH = (random_tensor({kWideVocab, kHidden}, 1) / 4).requires_grad_();
  const at::Tensor hidden_TH =
      at::embedding(weight_VH, at::arange(kTokens, at::kLong).mul_(7).remainder_(kWideVocab))
          .tanh();
  const at::Tensor logits = at::linear(hidden_TH.narrow(0, 0, kTokens - 1), weight_VH);
  const at::Tensor sum =
      at::cross_entropy_loss(logits, at::tensor(ce.values, at::kLong), {}, at::Reduction::Sum);
  torch::autograd::backward({sum * 0.01}, {});
  EXPECT_NEAR(chunked.ce_sum, sum.item<double>(), 1e-6 * chunked.ce_sum);
  EXPECT_LE(relative_distance(chunked.weight, weight_VH.grad()), 1e-6);
}

TEST(LossChunks, GiveTheSameBitsEveryTime) {
  const RowSupervision supervision = supervise_all();
  const Gradients first = tied_gradients(options_of(10), supervision),
                  second = tied_gradients(options_of(10), supervision);
  EXPECT_TRUE(at::equal(first.hidden, second.hidden));
  EXPECT_TRUE(at::equal(first.weight, second.weight));
}

TEST(LossChunks, SumTheHeadsGradientInFloat32WhateverItsType) {
  const RowSupervision supervision = supervise_all();
  const Gradients whole = tied_gradients(options_of(kTokens), supervision, at::kBFloat16);
  const Gradients chunked = tied_gradients(options_of(4), supervision, at::kBFloat16);
  EXPECT_EQ(chunked.weight.scalar_type(), at::kBFloat16);
  // half a bfloat16 step: no loss that grows with the number of chunks
  EXPECT_LE(relative_distance(chunked.weight, whole.weight), 4e-3);
}

TEST(LossChunks, HoldAtMostAFewChunksOfLogits) {
  const at::Tensor weight_VH = random_tensor({kWideVocab, kHidden}, 3).requires_grad_(),
                   hidden_TH = random_tensor({kTokens, kHidden}, 4).requires_grad_();
  const RowSupervision supervision = supervise_all();
  const Head head = test::product_with(weight_VH);
  const auto peak_of = [&](int64_t positions_per_chunk) {
    const test::MemoryMeter meter;
    const RowLoss loss =
        row_loss(hidden_TH, supervision, head, options_of(positions_per_chunk), {});
    torch::autograd::backward({loss.total}, {});
    weight_VH.mutable_grad().reset();
    hidden_TH.mutable_grad().reset();
    return meter.peak_bytes();
  };
  const int64_t weight_bytes = kWideVocab * kHidden * 4, first_chunk_bytes = 64 * kWideVocab * 4;
  // The head's gradient once, and of the longest chunk (the first, of 64 positions) four copies and
  // the work over bins.
  EXPECT_LE(peak_of(8), weight_bytes + 5 * first_chunk_bytes);
  EXPECT_GT(peak_of(kTokens), kLogitBytes);  // the meter sees logits
}

TEST(LossChunks, KeepNothingWithoutAGradient) {
  const at::Tensor weight_VH = random_tensor({kWideVocab, kHidden}, 3),
                   hidden_TH = random_tensor({kTokens, kHidden}, 4);
  const test::MemoryMeter meter;
  const RowLoss loss =
      row_loss(hidden_TH, supervise_all(), test::product_with(weight_VH), options_of(8), {});
  EXPECT_FALSE(loss.total.requires_grad());
  EXPECT_LE(meter.peak_bytes(), 5 * 64 * kWideVocab * 4);
}

TEST(LossChunks, GiveAPlainProductTheGradientOfAnyOtherHead) {
  const auto gradients_of = [&](bool is_plain) {
    const at::Tensor weight_VH = random_tensor({kWideVocab, kHidden}, 3).requires_grad_(),
                     hidden_TH = random_tensor({kTokens, kHidden}, 4).requires_grad_();
    const Head other{
        .logits_KV = [&](const at::Tensor& h) { return at::linear(h * 1.0, weight_VH) * 1.0; },
        .weight_VH = {},
        .parameters = {weight_VH}};
    const Head head = is_plain ? test::product_with(weight_VH) : other;
    torch::autograd::backward(
        {row_loss(hidden_TH, supervise_all(), head, options_of(10), {}).total}, {});
    return Gradients{hidden_TH.grad(), weight_VH.grad()};
  };
  const Gradients plain = gradients_of(true), other = gradients_of(false);
  EXPECT_LE(relative_distance(plain.weight, other.weight), 1e-6);
  EXPECT_LE(relative_distance(plain.hidden, other.hidden), 1e-6);
}

/// x·(W + B·A)ᵀ
struct LowRank : LinearAdapter {
  at::Tensor a_rH = random_tensor({2, kHidden}, 6).requires_grad_(),
             b_Vr = random_tensor({kWideVocab, 2}, 7).requires_grad_();
  at::Tensor forward(const at::Tensor& x, const LinearWeights& base,
                     Results /*results*/) const override {
    return at::linear(x, base.weight) + at::linear(at::linear(x, a_rH), b_Vr);
  }
  std::vector<at::Tensor> parameters() const override { return {a_rH, b_Vr}; }
};

TEST(LossChunks, GiveAnAdapterOnTheHeadItsGradientAndTheFrozenBaseNone) {
  const at::Tensor weight_VH = random_tensor({kWideVocab, kHidden}, 3),
                   hidden_TH = random_tensor({kTokens, kHidden}, 4).requires_grad_();
  const auto adapter = std::make_shared<const LowRank>();
  const Head head = Head::of({.weight = weight_VH, .bias = {}, .adapter = adapter});
  torch::autograd::backward({row_loss(hidden_TH, supervise_all(), head, options_of(10), {}).total},
                            {});
  // The same head as one trained matrix.
  const at::Tensor merged_VH =
                       (weight_VH + at::mm(adapter->b_Vr, adapter->a_rH)).detach().requires_grad_(),
                   other_TH = hidden_TH.detach().clone().requires_grad_();
  torch::autograd::backward(
      {row_loss(other_TH, supervise_all(), test::product_with(merged_VH), options_of(10), {})
           .total},
      {});
  EXPECT_LE(relative_distance(hidden_TH.grad(), other_TH.grad()), 1e-5);
  EXPECT_LE(
      relative_distance(adapter->b_Vr.grad(), at::mm(merged_VH.grad(), adapter->a_rH.detach().t())),
      1e-5);
  EXPECT_LE(
      relative_distance(adapter->a_rH.grad(), at::mm(adapter->b_Vr.detach().t(), merged_VH.grad())),
      1e-5);
  EXPECT_FALSE(weight_VH.grad().defined());
}

TEST(LossChunks, RefuseASecondBackwardPass) {
  at::Tensor hidden_TH = random_tensor({3, kWideVocab}, 5).requires_grad_();
  const RowLoss loss =
      row_loss(hidden_TH, {{test::labels({1}, {2})}}, test::identity(), options_of(8), {});
  torch::autograd::backward({loss.total}, {}, /*retain_graph=*/true);
  EXPECT_THROW(torch::autograd::backward({loss.total}, {}), InternalError);
}

}  // namespace rematch
