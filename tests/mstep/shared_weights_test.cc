// Windows on ranks that share frozen weights: the ranks need each other in every row, and have
// different numbers of them.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/ranks/frozen_shards.h"
#include "engine/ranks/phase.h"
#include "learn/mstep/make_gradient_sum.h"
#include "learn/mstep/mstep.h"
#include "mstep/loss_targets.h"
#include "mstep/toy_rows.h"
#include "support/ranks.h"

namespace rematch {
namespace {

/// An embedding and a head around two frozen matrices, which ranks may share.
struct FrozenToy {
  explicit FrozenToy(std::shared_ptr<FrozenShards> shards) : blocks(std::move(shards)) {
    for (size_t i = 0; blocks && i < frozen.size(); ++i) {
      const at::Tensor values = frozen[i].detach().flatten();
      blocks->hold({frozen[i]}, [&](size_t, int64_t begin, int64_t count) {
        return values.narrow(0, begin, count);
      });
    }
  }
  std::shared_ptr<FrozenShards> blocks;
  at::Tensor embedding_VH = test::random_tensor({test::kVocab, test::kHidden}, 1).requires_grad_();
  at::Tensor head_VH = test::random_tensor({test::kVocab, test::kHidden}, 2).requires_grad_();
  std::array<at::Tensor, 2> frozen{test::random_tensor({test::kHidden, test::kHidden}, 3),
                                   test::random_tensor({test::kHidden, test::kHidden}, 4)};

  at::Tensor hidden_TH(const PackedRow& row) const {
    std::vector<int64_t> ids;
    for (const auto& segment : row.segments)
      ids.insert(ids.end(), segment->token_ids.begin(), segment->token_ids.end());
    at::Tensor hidden = embedding_VH.index_select(0, at::tensor(ids, at::kLong));
    for (size_t i = 0; i < frozen.size(); ++i) {
      std::function<void()> need;
      if (blocks) need = [this, i] { blocks->need(i); };
      hidden = run_block(need, [&] { return at::tanh(at::linear(hidden, frozen[i])); });
    }
    return hidden;
  }

  MStep mstep(Group& group, GradientSumOptions over_ranks, int64_t failing_row = -1) {
    MStep::Options options{.max_grad_norm = 0.5, .learning_rate = 0.01};
    for (int i = 0; i < kNumBins; ++i)
      options.loss.coord_token_ids[static_cast<size_t>(i)] = i + 10;
    if (blocks) over_ranks.meet = [this] { blocks->meet(); };
    const RowModel model{.hidden_TH =
                             [this, failing_row](const PackedRow& row) {
                               at::Tensor hidden = hidden_TH(row);
                               if (row.segments[0]->sample_id == failing_row) {
                                 throw UserError(
                                     ErrorKind::kData,
                                     {.error = "planted", .where = "", .what = "", .fix = ""});
                               }
                               return hidden;
                             },
                         .head = test::product_with(head_VH)};
    return {model,
            make_gradient_sum({{"llm", 0.01, 0.1, {"embedding", "head"}, {embedding_VH, head_VH}}},
                              group, over_ranks),
            {},
            Schedule({.type = ScheduleType::kConstant}),
            options};
  }
};

/// This rank's rows of a window. Row 6 has no supervision.
Window rows_of(int64_t num_rows, const Group& group) {
  Window window;
  for (int64_t row = group.rank(); row < num_rows; row += group.size()) {
    auto made = std::make_shared<Segment>(*test::segment(row));
    if (row == 6) {
      made->labels.assign(made->token_ids.size(), kIgnoreLabel);
      made->slots.clear();
    }
    window.rows.push_back({{made}});
  }
  return window;
}

/// The weights after three windows.
std::vector<at::Tensor> train_frozen(int size, bool shares, const GradientSumOptions& over_ranks) {
  std::vector<at::Tensor> weights;
  std::mutex mutex;
  const auto body = [&](Group& group) {
    FrozenToy toy(shares ? std::make_shared<FrozenShards>(group, at::kCPU) : nullptr);
    MStep mstep = toy.mstep(group, over_ranks);
    MetricsBag metrics;
    for (const int64_t num_rows : {7, 2, 8}) mstep.run(rows_of(num_rows, group), metrics);
    const std::lock_guard<std::mutex> lock(mutex);
    weights = {toy.embedding_VH.detach(), toy.head_VH.detach()};
  };
  if (size > 1) {
    test::run_ranks(size, body);
  } else {
    at::set_num_threads(1);
    body(alone());
  }
  return weights;
}

void expect_same_weights(const std::vector<at::Tensor>& found,
                         const std::vector<at::Tensor>& wanted, const std::string& what) {
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(found[i].equal(wanted[i])) << what << i;
}

}  // namespace

TEST(SharedWeights, TrainWithTheBitsOfOneProcess) {
  const std::vector<at::Tensor> one = train_frozen(1, false, {});
  EXPECT_FALSE(one[0].equal(FrozenToy(nullptr).embedding_VH.detach()));
  for (const int size : {2, 3, 4}) {
    const GradientSumOptions exact{.exact_ranks = true, .zero_stage = 3, .bucket_bytes = 1000};
    expect_same_weights(train_frozen(size, true, exact), one, std::to_string(size) + " ranks ");
  }
}

TEST(SharedWeights, ChangeNoBitWhereGradientsAreSentOncePerStep) {
  for (const int size : {2, 3, 4}) {
    expect_same_weights(train_frozen(size, true, {.zero_stage = 3, .bucket_bytes = 1000}),
                        train_frozen(size, false, {.zero_stage = 0}),
                        std::to_string(size) + " ranks ");
  }
}

TEST(SharedWeights, AFailureInAnyRowEndsAllRanksAndTheNextWindowTrains) {
  for (const bool exact_ranks : {false, true}) {
    test::run_ranks(3, [&](Group& group) {
      for (int64_t row = 0; row < 6; ++row) {
        FrozenToy toy(std::make_shared<FrozenShards>(group, at::kCPU));
        MStep mstep = toy.mstep(
            group, {.exact_ranks = exact_ranks, .zero_stage = 3, .bucket_bytes = 1000}, row);
        MetricsBag metrics;
        const auto step = [&](int64_t num_rows) {
          together(group, [&] { mstep.run(rows_of(num_rows, group), metrics); });
        };
        if (row % group.size() == group.rank())
          EXPECT_THROW(step(7), UserError);
        else
          EXPECT_THROW(step(7), PeerFailure);
        EXPECT_EQ(mstep.num_steps(), 0);
        step(row);  // its rows end before the failing one
        EXPECT_EQ(mstep.num_steps(), 1);
      }
    });
  }
}

}  // namespace rematch
