#include "model/nn/attention.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "model/nn/segment_plan.h"

namespace rematch {
namespace {

struct Qkv {
  at::Tensor q, k, v;  // [T, heads, D] in double or float
};

at::Tensor ramp(std::vector<int64_t> shape, double phase, at::ScalarType dtype) {
  int64_t numel = 1;
  for (const int64_t extent : shape) numel *= extent;
  return at::sin(at::arange(numel, at::kDouble) * 0.731 + phase).view(shape).to(dtype);
}

Qkv make_qkv(int64_t num_tokens, int64_t nq, int64_t nkv, at::ScalarType dtype = at::kFloat) {
  return {ramp({num_tokens, nq, 8}, 0.1, dtype).requires_grad_(true),
          ramp({num_tokens, nkv, 8}, 1.7, dtype).requires_grad_(true),
          ramp({num_tokens, nkv, 8}, 2.9, dtype).requires_grad_(true)};
}

// Attention by its definition, one segment and one head at a time.
at::Tensor by_definition(const Qkv& x, const std::vector<int64_t>& lens, bool is_causal) {
  std::vector<at::Tensor> outputs;
  const int64_t group = x.q.size(1) / x.k.size(1);
  int64_t begin = 0;
  for (const int64_t len : lens) {
    std::vector<at::Tensor> heads;
    for (int64_t h = 0; h < x.q.size(1); ++h) {
      const auto rows = [&](const at::Tensor& t, int64_t head) {
        return t.narrow(0, begin, len).select(1, head).to(at::kDouble);
      };
      at::Tensor scores = at::matmul(rows(x.q, h), rows(x.k, h / group).t()) / std::sqrt(8.0);
      if (is_causal)
        scores = scores.masked_fill(at::ones({len, len}, at::kBool).triu(1),
                                    -std::numeric_limits<double>::infinity());
      heads.push_back(at::matmul(scores.softmax(-1), rows(x.v, h / group)));
    }
    outputs.push_back(at::stack(heads, 1));
    begin += len;
  }
  return at::cat(outputs, 0);
}

void expect_same(const at::Tensor& found, const at::Tensor& wanted, const Qkv& x) {
  ASSERT_EQ(found.sizes(), wanted.sizes());
  EXPECT_LT((found - wanted).abs().max().item<double>(), 1e-5);
  const at::Tensor weights = ramp(wanted.sizes().vec(), 0.5, at::kDouble);
  const auto gradients = [&](const at::Tensor& output) {
    (output.to(at::kDouble) * weights).sum().backward();
    std::vector<at::Tensor> found_gradients;
    for (const at::Tensor& t : {x.q, x.k, x.v}) {
      found_gradients.push_back(t.grad().clone());
      t.mutable_grad() = at::Tensor();
    }
    return found_gradients;
  };
  const auto ours = gradients(found), reference = gradients(wanted);
  for (size_t i = 0; i < ours.size(); ++i)
    EXPECT_LT((ours[i] - reference[i]).abs().max().item<double>(), 1e-5) << "input " << i;
}

void check_causal(const std::vector<int64_t>& lens, int64_t nq, int64_t nkv) {
  int64_t num_tokens = 0;
  for (const int64_t len : lens) num_tokens += len;
  const Qkv x = make_qkv(num_tokens, nq, nkv);
  VarlenCausalAttention attention(lens);
  expect_same(attention.attend(0, x.q, x.k, x.v), by_definition(x, lens, true), x);
}

TEST(VarlenCausalAttention, EqualsTheDefinitionForOneSegment) { check_causal({13}, 4, 2); }
TEST(VarlenCausalAttention, EqualsTheDefinitionForEqualSegments) { check_causal({7, 7, 7}, 4, 4); }
TEST(VarlenCausalAttention, EqualsTheDefinitionForMixedSegments) {
  check_causal({3, 17, 1, 17, 9, 3}, 6, 2);
}
TEST(VarlenCausalAttention, EqualsTheDefinitionBeyondTheGroupingLimit) {
  check_causal({300, 5, 290, 40}, 2, 1);
}

TEST(VarlenCausalAttention, NaNInOneSegmentStaysThere) {
  Qkv x = make_qkv(20, 2, 2);
  for (at::Tensor* t : {&x.q, &x.k, &x.v}) {
    *t = t->detach().clone();
    t->narrow(0, 0, 8).fill_(std::numeric_limits<float>::quiet_NaN());
    t->requires_grad_(true);
  }
  VarlenCausalAttention attention({8, 12});
  const at::Tensor output = attention.attend(0, x.q, x.k, x.v);
  EXPECT_TRUE(output.narrow(0, 8, 12).isfinite().all().item<bool>());
  output.narrow(0, 8, 12).sum().backward();
  EXPECT_TRUE(x.v.grad().narrow(0, 8, 12).isfinite().all().item<bool>());
}

TEST(SegmentAttention, EqualsTheDefinitionForEqualAndMixedBlocks) {
  for (const std::vector<int64_t>& lens : {std::vector<int64_t>{4, 4, 4}, {6, 4, 6, 1, 4}}) {
    int64_t num_rows = 0;
    for (const int64_t len : lens) num_rows += len;
    const Qkv x = make_qkv(num_rows, 3, 3);
    expect_same(SegmentAttention(lens, /*is_causal=*/false).attend(x.q, x.k, x.v),
                by_definition(x, lens, false), x);
  }
}

TEST(MaskedAttention, LooksOnlyWhereTheMaskAllows) {
  const at::Tensor q = ramp({1, 4, 1, 8}, 0, at::kFloat), k = ramp({1, 2, 5, 8}, 1, at::kFloat),
                   v = ramp({1, 2, 5, 8}, 2, at::kFloat);
  at::Tensor mask = at::zeros({1, 1, 1, 5});
  mask.narrow(3, 3, 2).fill_(-std::numeric_limits<float>::infinity());
  const at::Tensor masked = masked_attention(q, k, v, mask);
  const at::Tensor shorter =
      masked_attention(q, k.narrow(2, 0, 3), v.narrow(2, 0, 3), at::zeros({1, 1, 1, 3}));
  EXPECT_LT((masked - shorter).abs().max().item<double>(), 1e-6);
}

TEST(SegmentPlan, EqualSegmentsInOrderNeedNoCopy) {
  EXPECT_TRUE(SegmentPlan({5, 5, 5}, {.may_pad = true}, at::kCPU).is_identity());
  EXPECT_TRUE(SegmentPlan({5}, {}, at::kCPU).is_identity());
  EXPECT_FALSE(SegmentPlan({5, 4, 5}, {}, at::kCPU).is_identity());
}

TEST(SegmentPlan, LongSegmentsPadOnlyWhenNearlyFull) {
  EXPECT_EQ(SegmentPlan({1000, 900, 300, 290}, {.may_pad = true}, at::kCPU).groups().size(), 2u);
  EXPECT_EQ(SegmentPlan({1000, 800, 300}, {.may_pad = true}, at::kCPU).groups().size(), 3u);
  EXPECT_EQ(SegmentPlan({60, 3, 20}, {.may_pad = true}, at::kCPU).groups().size(), 1u);
  EXPECT_EQ(SegmentPlan({200, 3, 200}, {}, at::kCPU).groups().size(), 2u);
}

RC_GTEST_PROP(SegmentPlanProperty, TheWayBackUndoesTheWayThere, ()) {
  const auto lens = *rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(0, 40));
  const bool may_pad = *rc::gen::arbitrary<bool>();
  int64_t num_rows = 0;
  for (const int64_t len : lens) num_rows += len;
  const SegmentPlan plan(lens, {.may_pad = may_pad, .always_group_len = 8, .min_fill = 0.5},
                         at::kCPU);
  const at::Tensor rows = at::arange(num_rows * 2, at::kFloat).view({num_rows, 2});
  RC_ASSERT(at::equal(plan.from_groups(plan.to_groups(rows)), rows));
}

}  // namespace
}  // namespace rematch
