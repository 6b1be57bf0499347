#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "model/nn/attention_choice.h"

namespace rematch::test {

/// Compares paged_attention() on a device with its definition: sequences of one page and of two,
/// the pages in any order.
inline void expect_pages_are_read(const at::Device& device, int64_t head_dim = 16) {
  const std::vector<int64_t> lens{7, 300, 256};
  const std::vector<std::vector<int64_t>> pages{{4}, {0, 3}, {1}};
  at::manual_seed(3);
  const auto random = [](at::IntArrayRef sizes) { return at::randn(sizes).to(at::kBFloat16); };
  const at::Tensor q = random({3, 4, head_dim}), k = random({5, kPageTokens, 2, head_dim}),
                   v = random({5, kPageTokens, 2, head_dim});
  const at::Tensor table = at::tensor(std::vector<int>{4, 2, 0, 3, 1, 2}, at::kInt).view({3, 2});
  const at::Tensor found = paged_attention(q.to(device), k.to(device), v.to(device),
                                           {.pages_SB = table.to(device),
                                            .lens_S = at::tensor(lens, at::kInt).to(device),
                                            .begins = SegmentBounds::from_lens(lens, device).begins,
                                            .max_len = 512})
                               .cpu();
  for (size_t i = 0; i < lens.size(); ++i) {
    const auto s = static_cast<int64_t>(i);
    const auto rows = [&](const at::Tensor& x) {
      const at::Tensor all = x.index_select(0, at::tensor(pages[i])).flatten(0, 1);
      return all.narrow(0, 0, lens[i]).transpose(0, 1).to(at::kFloat);
    };
    const at::Tensor query = q[s].view({2, 2, head_dim}).to(at::kFloat),
                     scores = at::matmul(query, rows(k).transpose(1, 2)) /
                              std::sqrt(static_cast<double>(head_dim)),
                     wanted = at::matmul(scores.softmax(-1), rows(v));
    const at::Tensor difference = found[s].view({2, 2, head_dim}).to(at::kFloat) - wanted;
    EXPECT_LT(difference.abs().max().item<double>(), 2e-2) << "sequence " << i;
  }
}

}  // namespace rematch::test
