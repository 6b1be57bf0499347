// One window over one, two, three and four ranks: the same weights, losses and optimizer state, to
// the bit.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>

#include "ranks/agreement.h"
#include "mstep/loss_targets.h"
#include "mstep/mstep.h"
#include "mstep/toy_rows.h"
#include "support/ranks.h"

namespace rematch {
namespace {

using test::kHidden;
using test::kVocab;
using test::random_tensor;
using test::segment;

/// An embedding, a head, a bias that only rows of sample 5 use, and one that no row uses.
struct Toy {
  explicit Toy(at::ScalarType dtype) : dtype(dtype) {}
  at::ScalarType dtype;
  at::Tensor embedding_VH = random_tensor({kVocab, kHidden}, 1).to(dtype).requires_grad_();
  at::Tensor head_VH = random_tensor({kVocab, kHidden}, 2).to(dtype).requires_grad_();
  at::Tensor rare_H = random_tensor({kHidden}, 3).requires_grad_();
  at::Tensor unused_H = random_tensor({kHidden}, 4).requires_grad_();
  std::vector<std::pair<int64_t, int64_t>> keys;  ///< of the rows that were trained

  RowModel model() {
    return {.hidden_TH =
                [this](const PackedRow& row) {
                  std::vector<int64_t> ids;
                  for (const auto& segment : row.segments)
                    ids.insert(ids.end(), segment->token_ids.begin(), segment->token_ids.end());
                  const at::Tensor hidden =
                      embedding_VH.index_select(0, at::tensor(ids, at::kLong));
                  return row.segments[0]->sample_id == 5 ? hidden + rare_H.to(dtype) : hidden;
                },
            .head = test::product_with(head_VH),
            .training_row =
                [this](int64_t step, int64_t row_idx) {
                  keys.emplace_back(step, row_idx);
                  return nullptr;
                }};
  }
  std::vector<ParameterGroup> groups() const {
    return {{"vit", 0.02, 0.1, {"embedding", "rare"}, {embedding_VH, rare_H}},
            {"llm", 0.01, 0.0, {"head", "unused"}, {head_VH, unused_H}}};
  }
};

/// What a rank takes of a window of `num_rows` rows.
Window share_of(int64_t num_rows, const Group& group) {
  Window window;
  for (int64_t row = group.rank(); row < num_rows; row += group.size())
    window.rows.push_back({{segment(row)}});
  return window;
}

struct Outcome {
  std::vector<at::Tensor> weights;
  std::map<std::string, at::Tensor> state;
  MetricsBag metrics;
  std::vector<std::pair<int64_t, int64_t>> keys;
};

struct Case {
  int zero_stage = 0;
  at::ScalarType dtype = at::kFloat;
  double max_norm = 0.5;
  int64_t bucket_bytes = int64_t{25} << 20;
};

/// Three steps on windows of 7, 7 and 2 rows.
Outcome train(int size, const Case& one) {
  Outcome outcome;
  std::mutex mutex;
  const auto body = [&](Group& group) {
    Toy toy(one.dtype);
    MStep::Options options{.max_grad_norm = one.max_norm,
                           .learning_rate = 0.01,
                           .group = &group,
                           .zero_stage = one.zero_stage,
                           .bucket_bytes = one.bucket_bytes};
    for (int i = 0; i < kNumBins; ++i)
      options.loss.coord_token_ids[static_cast<size_t>(i)] = i + 10;
    MStep mstep(toy.model(), toy.groups(), {}, Schedule({.type = ScheduleType::kConstant}),
                options);
    MetricsBag metrics;
    for (const int64_t num_rows : {7, 7, 2}) mstep.run(share_of(num_rows, group), metrics);
    const std::lock_guard<std::mutex> lock(mutex);
    const std::vector<at::Tensor> weights{toy.embedding_VH.detach(), toy.head_VH.detach(),
                                          toy.rare_H.detach(), toy.unused_H.detach()};
    if (!outcome.weights.empty()) {
      for (size_t i = 0; i < weights.size(); ++i)
        EXPECT_TRUE(weights[i].equal(outcome.weights[i])) << "the ranks differ in tensor " << i;
    }
    outcome.weights = weights;
    for (const auto& [name, tensor] : mstep.state_to_save())
      EXPECT_TRUE(outcome.state.emplace(name, tensor.clone()).second) << name;
    if (group.rank() == 0) outcome.metrics = metrics;
    outcome.keys.insert(outcome.keys.end(), toy.keys.begin(), toy.keys.end());
  };
  if (size == 1) {
    at::set_num_threads(1);
    body(alone());
  } else {
    test::run_ranks(size, body);
  }
  std::sort(outcome.keys.begin(), outcome.keys.end());
  return outcome;
}

void expect_same(const Outcome& found, const Outcome& expected, const std::string& what) {
  for (size_t i = 0; i < expected.weights.size(); ++i)
    EXPECT_TRUE(found.weights[i].equal(expected.weights[i])) << what << ", tensor " << i;
  EXPECT_EQ(found.keys, expected.keys)
      << what << ": rows are known by their place in the window of all ranks";
  ASSERT_EQ(found.state.size(), expected.state.size()) << what;
  for (const auto& [name, tensor] : expected.state)
    EXPECT_TRUE(found.state.at(name).equal(tensor)) << what << ", " << name;
  for (const auto& [name, values] : expected.metrics.all()) {
    if (name.rfind("time/", 0) == 0) continue;
    EXPECT_EQ(found.metrics.values(name), values) << what << ", " << name;
  }
}

}  // namespace

TEST(MStepOverRanks, GivesTheBitsOfOneProcess) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Outcome one = train(1, {.dtype = dtype});
    EXPECT_FALSE(one.weights[0].equal(Toy(dtype).embedding_VH.detach()));
    for (const int size : {2, 3, 4}) {
      for (const int zero_stage : {0, 1, 2}) {
        expect_same(train(size, {.zero_stage = zero_stage, .dtype = dtype}), one,
                    std::to_string(size) + " ranks, zero " + std::to_string(zero_stage));
      }
    }
  }
}

TEST(MStepOverRanks, GivesTheSameBitsInBucketsOfAnySize) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Outcome one = train(1, {.dtype = dtype});
    // each parameter in a message of its own; the two biases in one; one matrix with a bias
    for (const int64_t bytes : {1, 64, 33000}) {
      for (const int zero_stage : {0, 1}) {
        expect_same(train(3, {.zero_stage = zero_stage, .dtype = dtype, .bucket_bytes = bytes}),
                    one, std::to_string(bytes) + " bytes, zero " + std::to_string(zero_stage));
      }
    }
  }
}

TEST(MStepOverRanks, MeasuresWithoutClippingToo) {
  expect_same(train(2, {.zero_stage = 1, .max_norm = 0}), train(1, {.max_norm = 0}), "no clipping");
}

TEST(MStepOverRanks, ARowThatFailsOnOneRankEndsAllWithoutAStep) {
  test::run_ranks(3, [](Group& group) {
    Toy toy(at::kFloat);
    RowModel model = toy.model();
    model.hidden_TH = [&, inner = model.hidden_TH](const PackedRow& row) {
      const at::Tensor hidden = inner(row);
      return row.segments[0]->sample_id == 4 ? hidden * std::numeric_limits<double>::quiet_NaN()
                                             : hidden;
    };
    MStep::Options options{.group = &group, .zero_stage = 1};
    for (int i = 0; i < kNumBins; ++i)
      options.loss.coord_token_ids[static_cast<size_t>(i)] = i + 10;
    MStep mstep(model, toy.groups(), {}, Schedule({.type = ScheduleType::kConstant}), options);
    MetricsBag metrics;
    if (group.rank() == 1) {
      EXPECT_THROW(mstep.run(share_of(7, group), metrics), NonFiniteLoss);
    } else {
      EXPECT_THROW(mstep.run(share_of(7, group), metrics), KeepingPeerFailure);
    }
    EXPECT_EQ(mstep.num_steps(), 0);
    EXPECT_TRUE(toy.head_VH.detach().equal(Toy(at::kFloat).head_VH.detach()));
    EXPECT_FALSE(toy.head_VH.grad().defined());
    mstep.run(share_of(4, group), metrics);  // and goes on as if nothing had happened
    EXPECT_EQ(mstep.num_steps(), 1);
  });
}

}  // namespace rematch
