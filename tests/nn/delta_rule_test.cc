#include "model/nn/delta_rule.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <numeric>

#include "model/nn/delta_chunks.h"
#include "model/nn/more_norms.h"
#include "model/nn/short_conv.h"

namespace rematch {
namespace {

const DeltaHeads kHeads{.num_key_heads = 2, .num_value_heads = 4, .key_dim = 8, .value_dim = 6};

struct Row {
  at::Tensor qkv, g, beta, g_outputs;

  explicit Row(int64_t len) {
    at::manual_seed(7 + static_cast<uint64_t>(len));
    qkv = at::randn({len, kHeads.num_channels()});
    g = -at::rand({len, kHeads.num_value_heads}) * 0.4;
    beta = at::rand({len, kHeads.num_value_heads});
    g_outputs = at::randn({len, kHeads.num_value_heads, kHeads.value_dim});
  }
  DeltaInputs inputs() const { return {qkv, g, beta}; }
};

// The recurrence token by token in float64, differentiable.
at::Tensor reference(const at::Tensor& qkv, const at::Tensor& g, const at::Tensor& beta) {
  const int64_t width = kHeads.key_width();
  const auto keys = [&](int64_t begin) {
    const at::Tensor x =
        qkv.narrow(1, begin, width).unflatten(1, {kHeads.num_key_heads, -1}).to(at::kDouble);
    return (x / ((x * x).sum(-1, true) + 1e-6).sqrt()).repeat_interleave(2, 1);
  };
  const at::Tensor q = keys(0) / std::sqrt(static_cast<double>(kHeads.key_dim)), k = keys(width),
                   v = qkv.narrow(1, 2 * width, qkv.size(1) - 2 * width)
                           .unflatten(1, {kHeads.num_value_heads, -1})
                           .to(at::kDouble);
  at::Tensor state = at::zeros({kHeads.num_value_heads, kHeads.key_dim, kHeads.value_dim},
                               at::TensorOptions(at::kDouble));
  std::vector<at::Tensor> outputs;
  for (int64_t t = 0; t < qkv.size(0); ++t) {
    state = state * g[t].to(at::kDouble).exp().view({-1, 1, 1});
    const at::Tensor read = (state * k[t].unsqueeze(-1)).sum(1);
    state = state + k[t].unsqueeze(-1) *
                        ((v[t] - read) * beta[t].to(at::kDouble).unsqueeze(-1)).unsqueeze(1);
    outputs.push_back((state * q[t].unsqueeze(-1)).sum(1));
  }
  return at::stack(outputs);
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

std::vector<at::Tensor> gradients_of(const at::Tensor& outputs, const Row& row) {
  return torch::autograd::grad({outputs}, {row.qkv, row.g, row.beta},
                               {row.g_outputs.to(outputs.scalar_type())});
}

void train(const Row& row) {
  for (at::Tensor tensor : {row.qkv, row.g, row.beta}) tensor.set_requires_grad(true);
}

const std::vector<int64_t> kLengths{1, 3, 4, 63, 64, 65, 200, 600};

// Acceptance (a) of Qwen3.5.
TEST(DeltaRule, RecurrentEqualsChunkedForEveryLength) {
  for (const int64_t len : kLengths) {
    const Row row(len);
    const auto plan = std::make_shared<const ChunkPlan>(std::vector<int64_t>{len}, at::kCPU);
    at::Tensor states;
    const at::Tensor outputs = chunked_delta_rule(row.inputs(), kHeads, plan, &states);
    const at::Tensor state = at::zeros_like(states);
    for (int64_t t = 0; t < len; ++t) {
      const auto one = [&](const at::Tensor& x) { return x.narrow(0, t, 1); };
      const at::Tensor step =
          delta_rule_step({one(row.qkv), one(row.g), one(row.beta)}, kHeads, state);
      ASSERT_LT(distance(step[0], outputs[t]), 1e-5) << "length " << len << ", token " << t;
    }
    EXPECT_LT(distance(state, states), 1e-5) << "length " << len;
  }
}

TEST(DeltaRule, OutputsAndGradientsAreThoseOfTheRecurrence) {
  for (const int64_t len : kLengths) {
    const Row row(len);
    train(row);
    const auto plan = std::make_shared<const ChunkPlan>(std::vector<int64_t>{len}, at::kCPU);
    const at::Tensor outputs = chunked_delta_rule(row.inputs(), kHeads, plan),
                     wanted = reference(row.qkv, row.g, row.beta);
    EXPECT_LT(distance(outputs, wanted), 1e-5) << "length " << len;
    const auto found = gradients_of(outputs, row), exact = gradients_of(wanted, row);
    for (size_t i = 0; i < exact.size(); ++i)
      EXPECT_LT(distance(found[i], exact[i]), 1e-4) << "length " << len << ", input " << i;
  }
}

// Acceptance (b) of Qwen3.5.
TEST(DeltaRule, PackedEqualsAloneInOutputsAndGradients) {
  const std::vector<int64_t> lens{1, 3, 0, 4, 63, 64, 65, 200, 600, 2};
  const Row row(std::accumulate(lens.begin(), lens.end(), int64_t{0}));
  at::manual_seed(3);
  const at::Tensor weight = at::randn({kHeads.num_channels(), 1, 4});
  train(row);
  const auto run = [&](const std::vector<int64_t>& segment_lens, int64_t begin, int64_t count) {
    const auto part = [&](const at::Tensor& x) { return x.narrow(0, begin, count); };
    return chunked_delta_rule(
        {short_conv(part(row.qkv), weight, segment_lens), part(row.g), part(row.beta)}, kHeads,
        std::make_shared<const ChunkPlan>(segment_lens, at::kCPU));
  };
  const at::Tensor packed = run(lens, 0, row.qkv.size(0));
  std::vector<at::Tensor> alone;
  int64_t begin = 0;
  for (const int64_t len : lens) {
    if (len > 0) alone.push_back(run({len}, begin, len));
    begin += len;
  }
  const at::Tensor joined = at::cat(alone);
  EXPECT_LT(distance(packed, joined), 1e-5);
  const auto found = gradients_of(packed, row), wanted = gradients_of(joined, row);
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_LT(distance(found[i], wanted[i]), 1e-5) << i;
}

TEST(DeltaRule, TheSecondPartContinuesFromTheStatesOfTheFirst) {
  const std::vector<int64_t> lens{200, 3, 65}, cuts{70, 1, 64};
  const Row row(268);
  const auto plan_of = [](const std::vector<int64_t>& parts) {
    return std::make_shared<const ChunkPlan>(parts, at::kCPU);
  };
  const auto whole = plan_of(lens);
  at::Tensor wanted_states;
  const at::Tensor wanted = chunked_delta_rule(row.inputs(), kHeads, whole, &wanted_states);
  std::vector<int64_t> first_rows, second_rows, rests, begins;
  int64_t begin = 0;
  for (size_t s = 0; s < lens.size(); ++s) {
    for (int64_t i = 0; i < lens[s]; ++i)
      (i < cuts[s] ? first_rows : second_rows).push_back(begin + i);
    rests.push_back(lens[s] - cuts[s]);
    begin += lens[s];
  }
  const auto run = [&](const std::vector<int64_t>& rows, const std::vector<int64_t>& parts,
                       const at::Tensor& states, at::Tensor* final_states) {
    const at::Tensor index = at::tensor(rows, at::kLong);
    return chunked_delta_rule({row.qkv.index_select(0, index), row.g.index_select(0, index),
                               row.beta.index_select(0, index)},
                              kHeads, plan_of(parts), final_states, states);
  };
  // Each plan orders its segments by their number of chunks.
  const auto by_segment = [](const at::Tensor& states, const ChunkPlan& plan) {
    return at::empty_like(states).index_copy_(0, at::tensor(plan.segment_order(), at::kLong),
                                              states);
  };
  at::Tensor between, final_states;
  run(first_rows, cuts, {}, &between);
  const auto second = plan_of(rests);
  const at::Tensor states = by_segment(between, *plan_of(cuts))
                                .index_select(0, at::tensor(second->segment_order(), at::kLong));
  const at::Tensor found = run(second_rows, rests, states, &final_states);
  EXPECT_LT(distance(found, wanted.index_select(0, at::tensor(second_rows, at::kLong))), 1e-5);
  EXPECT_LT(distance(by_segment(final_states, *second), by_segment(wanted_states, *whole)), 1e-5);
}

TEST(ShortConv, ReadsTheInputsBeforeASegmentFromItsSlots) {
  at::manual_seed(8);
  const at::Tensor x = at::randn({20, 12}), weight = at::randn({12, 1, 4});
  const at::Tensor wanted = short_conv(x, weight, {20});
  const at::Tensor slots = at::cat({at::zeros({3, 12}), x.narrow(0, 0, 8), x.narrow(0, 5, 15)});
  EXPECT_TRUE(at::equal(short_conv_in_slots(slots, weight, spaced_rows({8, 12}, 4)), wanted));
}

TEST(ShortConv, EqualsAConvolutionAndItsGradients) {
  at::manual_seed(5);
  const at::Tensor x = at::randn({70, 12}).set_requires_grad(true),
                   weight = at::randn({12, 1, 4}).set_requires_grad(true), g = at::randn({70, 12});
  const at::Tensor
      found = short_conv(x, weight, {70}),
      wanted = at::silu(
          at::conv1d(x.t().unsqueeze(0), weight, {}, 1, 3, 1, 12).narrow(2, 0, 70).squeeze(0).t());
  EXPECT_LT(distance(found, wanted), 1e-5);
  const auto a = torch::autograd::grad({found}, {x, weight}, {g}),
             b = torch::autograd::grad({wanted}, {x, weight}, {g});
  EXPECT_LT(distance(a[0], b[0]), 1e-5);
  EXPECT_LT(distance(a[1], b[1]), 1e-4);
  const at::Tensor window = at::zeros({1, 3, 12});
  for (int64_t t = 0; t < 70; ++t)
    ASSERT_LT(distance(short_conv_step(x.detach().narrow(0, t, 1), weight.detach(), window)[0],
                       found.detach()[t]),
              1e-6)
        << t;
}

TEST(MoreNorms, GradientsAreThoseOfTheFormula) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    at::manual_seed(6);
    const double tolerance = dtype == at::kFloat ? 1e-5 : 5e-2;
    const auto leaf = [&](at::IntArrayRef sizes) {
      return at::randn(sizes).to(dtype).set_requires_grad(true);
    };
    const at::Tensor x = leaf({5, 3, 16}), gate = leaf({5, 3, 16}), weight = leaf({16}),
                     g = at::randn({5, 3, 16}).to(dtype);
    const at::Tensor wide = x.to(at::kFloat),
                     normed = wide * at::rsqrt(wide.pow(2).mean(-1, true) + 1e-6);
    const auto compare = [&](const at::Tensor& found, const at::Tensor& wanted,
                             const std::vector<at::Tensor>& inputs) {
      EXPECT_LT(distance(found, wanted), tolerance);
      const auto a = torch::autograd::grad({found}, inputs, {g}, /*retain_graph=*/true),
                 b = torch::autograd::grad({wanted}, inputs, {g}, /*retain_graph=*/true);
      for (size_t i = 0; i < a.size(); ++i) EXPECT_LT(distance(a[i], b[i]), tolerance) << i;
    };
    compare(offset_rms_norm(x, weight, 1e-6), (normed * (1 + weight.to(at::kFloat))).to(dtype),
            {x, weight});
    compare(gated_rms_norm(x, gate, weight, 1e-6),
            (weight * normed.to(dtype) * at::silu(gate.to(at::kFloat))).to(dtype),
            {x, gate, weight});
  }
}

}  // namespace
}  // namespace rematch
