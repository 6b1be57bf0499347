// One window over one, two, three and four ranks: weights, losses and optimizer state.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <new>

#include "engine/ranks/phase.h"
#include "learn/mstep/make_gradient_sum.h"
#include "learn/mstep/mstep.h"
#include "mstep/loss_targets.h"
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
                  return RowScope();
                }};
  }
  std::vector<ParameterGroup> groups() const {
    return {{"vit", 0.02, 0.1, {"embedding", "rare"}, {embedding_VH, rare_H}},
            {"llm", 0.01, 0.0, {"head", "unused"}, {head_VH, unused_H}}};
  }
};

/// This rank's rows of a window of `num_rows` rows. Row 6 has no supervision.
Window share_of(int64_t num_rows, const Group& group) {
  Window window;
  for (int64_t row = group.rank(); row < num_rows; row += group.size()) {
    auto made = std::make_shared<Segment>(*segment(row));
    if (row == 6) {
      made->labels.assign(made->token_ids.size(), kIgnoreLabel);
      made->slots.clear();
    }
    window.rows.push_back({{made}});
  }
  return window;
}

struct Outcome {
  std::vector<at::Tensor> weights;
  std::map<std::string, at::Tensor> state;
  MetricsBag metrics;
  std::vector<std::pair<int64_t, int64_t>> keys;
};

struct Case {
  GradientSumOptions over_ranks;
  at::ScalarType dtype = at::kFloat;
  double max_norm = 0.5;
  std::vector<int64_t> window_rows{7, 7, 2};
};

MStep make_mstep(const RowModel& model, const Toy& toy, Group& group,
                 const GradientSumOptions& over_ranks, double max_norm = 1.0) {
  MStep::Options options{.max_grad_norm = max_norm, .learning_rate = 0.01};
  for (int i = 0; i < kNumBins; ++i) options.loss.coord_token_ids[static_cast<size_t>(i)] = i + 10;
  return {model,
          make_gradient_sum(toy.groups(), group, over_ranks),
          {},
          Schedule({.type = ScheduleType::kConstant}),
          options};
}

/// A step on each window.
Outcome train(int size, const Case& one) {
  Outcome outcome;
  std::mutex mutex;
  const auto body = [&](Group& group) {
    Toy toy(one.dtype);
    MStep mstep = make_mstep(toy.model(), toy, group, one.over_ranks, one.max_norm);
    MetricsBag metrics;
    for (const int64_t num_rows : one.window_rows) mstep.run(share_of(num_rows, group), metrics);
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

/// Row `row` of every window throws on the rank that has it.
RowModel failing_in(const RowModel& model, int64_t row) {
  RowModel failing = model;
  failing.hidden_TH = [inner = model.hidden_TH, row](const PackedRow& packed) {
    const at::Tensor hidden_TH = inner(packed);
    if (packed.segments[0]->sample_id == row)
      throw UserError(ErrorKind::kData, {.error = "planted", .where = "", .what = "", .fix = ""});
    return hidden_TH;
  };
  return failing;
}

/// @return "own" or "peer", by the exception of `body`; "" if there is none
std::string failure_of(Group& group, const std::function<void()>& body) {
  try {
    together(group, body);
  } catch (const PeerFailure&) {
    return "peer";
  } catch (const std::exception&) {
    return "own";
  }
  return "";
}

}  // namespace

TEST(ExactRows, GiveTheBitsOfOneProcess) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Outcome one = train(1, {.dtype = dtype});
    EXPECT_FALSE(one.weights[0].equal(Toy(dtype).embedding_VH.detach()));
    for (const int size : {2, 3, 4}) {
      for (const int zero_stage : {0, 1, 2}) {
        expect_same(train(size, {.over_ranks = {.exact_ranks = true, .zero_stage = zero_stage},
                                 .dtype = dtype}),
                    one, std::to_string(size) + " ranks, zero " + std::to_string(zero_stage));
      }
    }
  }
}

TEST(ExactRows, GiveTheSameBitsInBucketsOfAnySize) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Outcome one = train(1, {.dtype = dtype});
    // a matrix in many messages, in a few, whole with a bias
    for (const int64_t bytes : {1000, 9000, 33000}) {
      for (const int zero_stage : {0, 1}) {
        const GradientSumOptions options{
            .exact_ranks = true, .zero_stage = zero_stage, .bucket_bytes = bytes};
        expect_same(train(3, {.over_ranks = options, .dtype = dtype}), one,
                    std::to_string(bytes) + " bytes, zero " + std::to_string(zero_stage));
      }
    }
  }
}

TEST(ExactRows, MeasureWithoutClippingToo) {
  expect_same(train(2, {.over_ranks = {.exact_ranks = true, .zero_stage = 1}, .max_norm = 0}),
              train(1, {.max_norm = 0}), "no clipping");
}

TEST(ReduceOnce, GivesTheSameBitsInEveryRunBucketAndZeroStage) {
  using Case = std::pair<int, at::ScalarType>;
  for (const auto& [size, dtype] :
       {Case{2, at::kFloat}, {3, at::kFloat}, {4, at::kFloat}, {3, at::kBFloat16}}) {
    const Outcome first = train(size, {.dtype = dtype});
    for (const int zero_stage : {0, 1, 2}) {
      for (const int64_t bytes : {1000, 33000}) {
        expect_same(train(size, {.over_ranks = {.zero_stage = zero_stage, .bucket_bytes = bytes},
                                 .dtype = dtype}),
                    first, std::to_string(size) + " ranks, zero " + std::to_string(zero_stage));
      }
    }
  }
}

TEST(ReduceOnce, GivesTheBitsOfOneProcessWithOneRowPerRank) {
  const std::vector<int64_t> rows{3, 3, 2};
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    expect_same(train(3, {.dtype = dtype, .window_rows = rows}),
                train(1, {.dtype = dtype, .window_rows = rows}), "3 rows on 3 ranks");
  }
}

TEST(ReduceOnce, TrainsAsOneProcessUpToTheOrderOfAdditions) {
  const Outcome one = train(1, {}), two = train(2, {});
  EXPECT_EQ(two.keys, one.keys);
  EXPECT_EQ(two.metrics.values("loss")[0], one.metrics.values("loss")[0]);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_LE((two.weights[i] - one.weights[i]).norm().item<double>(),
              1e-5 * one.weights[i].norm().item<double>())
        << i;
  }
}

TEST(GradientSum, AFailureInAnyRowEndsAllRanksWithoutAStep) {
  for (const bool exact_ranks : {false, true}) {
    test::run_ranks(3, [&](Group& group) {
      for (int64_t row = 0; row < 6; ++row) {
        for (const int zero_stage : {0, 1}) {
          Toy toy(at::kFloat);
          MStep mstep = make_mstep(
              failing_in(toy.model(), row), toy, group,
              {.exact_ranks = exact_ranks, .zero_stage = zero_stage, .bucket_bytes = 1000});
          MetricsBag metrics;
          const bool is_here = row % group.size() == group.rank();
          EXPECT_EQ(failure_of(group, [&] { mstep.run(share_of(7, group), metrics); }),
                    is_here ? "own" : "peer")
              << "row " << row;
          EXPECT_EQ(mstep.num_steps(), 0);
          EXPECT_TRUE(toy.head_VH.detach().equal(Toy(at::kFloat).head_VH.detach()));
          EXPECT_FALSE(toy.head_VH.grad().defined());
          // a window without that row trains as if nothing had happened
          together(group, [&] { mstep.run(share_of(row, group), metrics); });
          EXPECT_EQ(mstep.num_steps(), 1);
        }
      }
    });
  }
}

TEST(GradientSum, ANonFiniteLossOnOneRankKeepsTheStateOnAll) {
  for (const bool exact_ranks : {false, true}) {
    test::run_ranks(3, [&](Group& group) {
      Toy toy(at::kFloat);
      RowModel model = toy.model();
      model.hidden_TH = [&, inner = model.hidden_TH](const PackedRow& row) {
        const at::Tensor hidden = inner(row);
        return row.segments[0]->sample_id == 4 ? hidden * std::numeric_limits<double>::quiet_NaN()
                                               : hidden;
      };
      MStep mstep = make_mstep(model, toy, group, {.exact_ranks = exact_ranks, .zero_stage = 1});
      MetricsBag metrics;
      const auto step = [&] { together(group, [&] { mstep.run(share_of(7, group), metrics); }); };
      if (group.rank() == 1) {
        EXPECT_THROW(step(), NonFiniteLoss);
      } else {
        EXPECT_THROW(step(), KeepingPeerFailure);
      }
      EXPECT_EQ(mstep.num_steps(), 0);
      EXPECT_FALSE(toy.head_VH.grad().defined());
    });
  }
}

TEST(GradientSum, AnUpdateThatFailsOnOneRankEndsAll) {
  for (const int zero_stage : {0, 1}) {
    test::run_ranks(2, [&](Group& group) {
      const Toy toy(at::kFloat);
      const auto gradients =
          make_gradient_sum(toy.groups(), group, {.zero_stage = zero_stage, .bucket_bytes = 1000});
      const auto step = [&](bool fails) {
        return failure_of(group, [&] {
          gradients->begin({});
          gradients->finish(0);
          gradients->update([&] {
            if (fails && group.rank() == 1) throw std::bad_alloc();
          });
        });
      };
      EXPECT_EQ(step(true), group.rank() == 1 ? "own" : "peer");
      gradients->discard();
      EXPECT_EQ(step(false), "");
    });
  }
}

}  // namespace rematch
