#include "model/nn/fused_attention.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>

namespace rematch {
namespace {

struct HeadShape {
  int64_t batch, num_heads, num_key_heads, num_tokens, head_dim;
  bool is_causal;
};

struct QueriesKeysValues {
  at::Tensor q, k, v;
  std::vector<at::Tensor> all() const { return {q, k, v}; }
};

// Heads stored token by token, as projections leave them.
at::Tensor heads_by_token(int64_t batch, int64_t num_tokens, int64_t num_heads, int64_t width) {
  return at::randn({batch, num_tokens, num_heads, width})
      .to(at::kBFloat16)
      .transpose(1, 2)
      .requires_grad_();
}

QueriesKeysValues make_heads(const HeadShape& c) {
  return {heads_by_token(c.batch, c.num_tokens, c.num_heads, c.head_dim),
          heads_by_token(c.batch, c.num_tokens, c.num_key_heads, c.head_dim),
          heads_by_token(c.batch, c.num_tokens, c.num_key_heads, c.head_dim)};
}

at::Tensor attention_in_double(const QueriesKeysValues& x, bool is_causal) {
  const auto wide = [&](const at::Tensor& t) {
    return t.to(at::kDouble).repeat_interleave(x.q.size(1) / t.size(1), 1);
  };
  const int64_t num_tokens = x.q.size(2);
  at::Tensor scores = at::matmul(wide(x.q), wide(x.k).transpose(-1, -2)) /
                      std::sqrt(static_cast<double>(x.q.size(3)));
  if (is_causal)
    scores = scores.masked_fill(at::ones({num_tokens, num_tokens}, at::kBool).triu(1),
                                -std::numeric_limits<double>::infinity());
  return at::matmul(scores.softmax(-1), wide(x.v));
}

double relative_distance(const at::Tensor& found, const at::Tensor& wanted) {
  return ((found.to(at::kDouble) - wanted).norm() / wanted.norm()).item<double>();
}

TEST(FusedAttention, EqualsTheDefinitionAndItsGradients) {
  at::manual_seed(3);
  for (const HeadShape& c : {HeadShape{1, 2, 2, 5, 16, true}, HeadShape{2, 4, 2, 64, 32, true},
                             HeadShape{1, 4, 1, 300, 64, true}, HeadShape{1, 2, 2, 331, 128, true},
                             HeadShape{1, 3, 3, 61, 80, false}, HeadShape{2, 2, 1, 272, 64, false},
                             HeadShape{1, 1, 1, 1, 64, true}, HeadShape{1, 2, 1, 530, 256, true}}) {
    const QueriesKeysValues x = make_heads(c);
    if (!has_fused_attention(x.q, x.k, x.v)) GTEST_SKIP() << "no AVX-512 BF16";
    const at::Tensor found = fused_attention(x.q, x.k, x.v, c.is_causal),
                     wanted = attention_in_double(x, c.is_causal);
    EXPECT_LT(relative_distance(found, wanted.detach()), 5e-3) << c.num_tokens;
    const at::Tensor g = at::randn(found.sizes()).to(at::kBFloat16);
    const auto ours = torch::autograd::grad({found}, x.all(), {g}),
               reference = torch::autograd::grad({wanted}, x.all(), {g.to(at::kDouble)});
    for (size_t i = 0; i < ours.size(); ++i) {
      if (reference[i].norm().item<double>() > 1e-6) {
        EXPECT_LT(relative_distance(ours[i], reference[i].to(at::kDouble)), 1e-2)
            << c.num_tokens << " " << i;
      }
    }
  }
}

TEST(FusedAttention, IsAtLeastAsCloseAsTorchs) {
  at::manual_seed(4);
  const QueriesKeysValues x = make_heads({1, 4, 2, 400, 64, true});
  if (!has_fused_attention(x.q, x.k, x.v)) GTEST_SKIP() << "no AVX-512 BF16";
  const at::Tensor wanted = attention_in_double(x, true).detach();
  const at::Tensor torchs = at::scaled_dot_product_attention(x.q, x.k, x.v, std::nullopt, 0.0, true,
                                                             std::nullopt, /*enable_gqa=*/true);
  EXPECT_LT(relative_distance(fused_attention(x.q, x.k, x.v, true), wanted),
            1.1 * relative_distance(torchs.detach(), wanted));
}

TEST(FusedAttention, ATokenDependsOnNoLaterOne) {
  at::manual_seed(5);
  const QueriesKeysValues x = make_heads({1, 2, 1, 400, 64, true});
  if (!has_fused_attention(x.q, x.k, x.v)) GTEST_SKIP() << "no AVX-512 BF16";
  const at::Tensor all = fused_attention(x.q, x.k, x.v, true);
  const auto first = [](const at::Tensor& t) { return t.narrow(2, 0, 301); };
  EXPECT_TRUE(at::equal(fused_attention(first(x.q), first(x.k), first(x.v), true), first(all)));
}

TEST(FusedAttention, KeepsWhatIsNoNumber) {
  const QueriesKeysValues x = make_heads({1, 1, 1, 40, 32, true});
  if (!has_fused_attention(x.q, x.k, x.v)) GTEST_SKIP() << "no AVX-512 BF16";
  at::Tensor q = x.q.detach().clone();
  q.select(2, 7).fill_(std::numeric_limits<float>::quiet_NaN());
  q.requires_grad_();
  const at::Tensor out = fused_attention(q, x.k, x.v, true);
  EXPECT_TRUE(out.select(2, 7).isnan().all().item<bool>());
  EXPECT_TRUE(out.select(2, 8).isfinite().all().item<bool>());
  const auto gradients = torch::autograd::grad({out.select(2, 7).sum()}, {x.k});
  EXPECT_TRUE(gradients[0].isnan().any().item<bool>());
}

}  // namespace
}  // namespace rematch
