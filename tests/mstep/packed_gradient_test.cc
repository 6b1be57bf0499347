// The gradient of a step does not depend on how its segments are packed.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "learn/mstep/make_gradient_sum.h"
#include "learn/mstep/mstep.h"
#include "learn/mstep/optim/groups.h"
#include "model/packed_segments.h"
#include "model/row.h"
#include "support/paths.h"

namespace rematch {
namespace {

using Rows = std::vector<PackedRow>;

struct PackedStep {
  std::map<std::string, at::Tensor> gradients;
  double loss = 0, ce = 0, coord = 0;
};

// One real step of the M-step; with beta1 = 0 the first moment is the gradient.
PackedStep step_of(const Rows& rows, LossNormalization normalization) {
  const auto model = Model::load(test::source_path("tests/golden/model/tiny_tied"), {});
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  for (const NamedParameter& parameter : model->parameters())
    parameters.emplace_back(parameter.name, parameter.tensor);
  MStep::Options options;
  options.normalization = normalization;
  options.max_grad_norm = 0;
  for (size_t bin = 0; bin < 1000; ++bin)
    options.loss.coord_token_ids[bin] = test::kFirstCoord + static_cast<int>(bin);
  const RowModel row_model{.hidden_TH =
                               [&](const PackedRow& row) {
                                 return forward_row(*model, make_row(row, test::noise_pixels));
                               },
                           .head = Head::of(model->head())};
  MStep step(row_model,
             make_gradient_sum(make_groups(parameters, model->description().part_of,
                                           {.learning_rate = 0, .weight_decay = 0})),
             {.beta1 = 0.0}, Schedule({.type = ScheduleType::kConstant}), options);
  MetricsBag metrics;
  step.run(Window{.rows = rows}, metrics);
  const auto value = [&](const char* name) { return metrics.values(name).at(0); };
  PackedStep result{.loss = value("loss"), .ce = value("loss/ce"), .coord = value("loss/coord")};
  for (const auto& [name, tensor] : step.optimizer().state()) {
    if (name.ends_with(".exp_avg")) result.gradients[name] = tensor.clone();
  }
  EXPECT_EQ(result.gradients.size(), parameters.size());
  return result;
}

void expect_same(const PackedStep& found, const PackedStep& wanted, double tolerance = 1e-5) {
  EXPECT_NEAR(found.loss, wanted.loss, tolerance * wanted.loss);
  EXPECT_NEAR(found.ce, wanted.ce, tolerance * wanted.ce);
  EXPECT_NEAR(found.coord, wanted.coord, tolerance * wanted.coord);
  ASSERT_EQ(found.gradients.size(), wanted.gradients.size());
  double norm = 0, difference = 0;
  for (const auto& [name, gradient] : wanted.gradients)
    norm += std::pow(gradient.norm().item<double>(), 2);
  norm = std::sqrt(norm);
  ASSERT_GT(norm, 1e-3);
  for (const auto& [name, gradient] : wanted.gradients) {
    const double distance = (found.gradients.at(name) - gradient).norm().item<double>();
    difference += distance * distance;
    EXPECT_LE(distance, tolerance * std::max(gradient.norm().item<double>(), 1e-4 * norm)) << name;
  }
  EXPECT_LE(std::sqrt(difference), tolerance * norm);
}

PackedRow row_of(uint64_t seed, const std::vector<int64_t>& sample_ids) {
  PackedRow row;
  for (const int64_t id : sample_ids) {
    // Some have no image; one in seven is not supervised at all.
    row.segments.push_back(test::random_segment(
        seed, id, {.max_images = id % 4 == 3 ? 0 : 2, .supervised = id % 7 != 6}));
  }
  return row;
}

Rows one_row_each(uint64_t seed, int64_t count) {
  Rows rows;
  for (int64_t id = 0; id < count; ++id) rows.push_back(row_of(seed, {id}));
  return rows;
}

// The samples in a random order, cut into rows at random places.
Rows random_partition(uint64_t seed, int64_t count, uint64_t draw) {
  const uint64_t key = random_key({seed, draw, 3});
  std::vector<std::vector<int64_t>> ids(1);
  for (const int64_t id : random_permutation(key, count)) {
    if (!ids.back().empty() && random_uniform(key, 1000 + static_cast<uint64_t>(id)) < 0.4)
      ids.emplace_back();
    ids.back().push_back(id);
  }
  Rows rows;
  for (const auto& row : ids) rows.push_back(row_of(seed, row));
  return rows;
}

std::vector<int64_t> first_ids(int64_t count) {
  std::vector<int64_t> ids;
  for (int64_t id = 0; id < count; ++id) ids.push_back(id);
  return ids;
}

}  // namespace

TEST(PackedGradient, OneRowGivesWhatTheSegmentsOneByOneGive) {
  for (const int64_t count : {2, 7, 12}) {
    const auto seed = static_cast<uint64_t>(count);
    expect_same(step_of({row_of(seed, first_ids(count))}, LossNormalization::kWindow),
                step_of(one_row_each(seed, count), LossNormalization::kWindow));
  }
}

TEST(PackedGradient, AnyPartitionIntoRowsGivesTheSame) {
  constexpr int64_t kCount = 9;
  for (const uint64_t seed : {21, 22}) {
    const PackedStep alone = step_of(one_row_each(seed, kCount), LossNormalization::kWindow);
    for (uint64_t draw = 0; draw < 4; ++draw) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " draw " << draw);
      expect_same(step_of(random_partition(seed, kCount, draw), LossNormalization::kWindow), alone);
    }
  }
}

TEST(PackedGradient, ByRowItIsTheMeanOfTheRows) {
  const Rows rows{row_of(31, {0, 1, 2}), row_of(31, {3}), row_of(31, {4, 5})};
  PackedStep mean;
  for (const PackedRow& row : rows) {
    const PackedStep alone = step_of({row}, LossNormalization::kRow);
    // A window of one row is normalised alike either way.
    expect_same(alone, step_of({row}, LossNormalization::kWindow));
    const double share = 1.0 / static_cast<double>(rows.size());
    mean.loss += share * alone.loss;
    mean.ce += share * alone.ce;
    mean.coord += share * alone.coord;
    for (const auto& [name, gradient] : alone.gradients) {
      at::Tensor& sum = mean.gradients[name];
      sum = sum.defined() ? sum + share * gradient : share * gradient;
    }
  }
  expect_same(step_of(rows, LossNormalization::kRow), mean);
}

TEST(PackedGradient, ByRowItDependsOnThePacking) {
  // For this reason `window` is the default. Also shows that the comparisons above can fail.
  const PackedStep one = step_of({row_of(41, {0, 1, 2, 3})}, LossNormalization::kRow);
  const PackedStep two = step_of({row_of(41, {0}), row_of(41, {1, 2, 3})}, LossNormalization::kRow);
  double difference = 0, norm = 0;
  for (const auto& [name, gradient] : one.gradients) {
    difference += (two.gradients.at(name) - gradient).norm().item<double>();
    norm += gradient.norm().item<double>();
  }
  EXPECT_GT(difference, 1e-2 * norm);
}

}  // namespace rematch
