// Against a float64 reference made by autograd (tests/golden/mstep_losses.json.how).
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "learn/mstep/loss/losses.h"
#include "mstep/loss_targets.h"
#include "support/paths.h"

namespace rematch {
namespace {

struct GoldenCase {
  std::string name;
  at::Tensor logits_TV, grad_TV;
  RowSupervision supervision;
  LossOptions options;
  Json expect;
};

GoldenCase read_case(const Json& value, const float*& data) {
  GoldenCase golden;
  golden.name = value["name"];
  const int64_t num_tokens = value["num_tokens"];
  const int64_t vocab = value["vocab"];
  for (at::Tensor* tensor : {&golden.logits_TV, &golden.grad_TV}) {
    *tensor = at::from_blob(const_cast<float*>(data), {num_tokens, vocab}, at::kFloat).clone();
    data += num_tokens * vocab;
  }
  for (int64_t i = 0; i < num_tokens; ++i) {
    if (value["labels"][static_cast<size_t>(i)] == kIgnoreLabel) continue;
    KindTargets& ce = golden.supervision.by_kind[kLabels];
    ce.positions.push_back(i);
    ce.values.push_back(value["labels"][static_cast<size_t>(i)]);
  }
  for (const Json& slot : value["coord_slots"]) {
    KindTargets& coord = golden.supervision.by_kind[kCoordSlots];
    coord.positions.push_back(slot[0]);
    coord.values.push_back(slot[1]);
    coord.is_prefix.push_back(slot[2] == "prefix");
  }
  const Json& options = value["options"];
  golden.options.coord_token_ids = value["coord_token_ids"].get<std::array<int, 1000>>();
  for (const auto& [key, number] : options.items()) {
    if (!number.is_null()) golden.options.settings[key] = number;
  }
  golden.expect = value["expect"];
  return golden;
}

std::vector<GoldenCase> golden_cases() {
  const Json table = read_json_file(test::source_path("tests/golden/mstep_losses.json"));
  const std::string bytes = read_file(test::source_path("tests/golden/mstep_losses.bin"));
  const auto* data = reinterpret_cast<const float*>(bytes.data());
  std::vector<GoldenCase> cases;
  for (const Json& value : table) cases.push_back(read_case(value, data));
  EXPECT_EQ(reinterpret_cast<const char*>(data), bytes.data() + bytes.size());
  return cases;
}

// Means of a row over a head that hands the logits through.
RowLoss golden_loss(const GoldenCase& golden, const at::Tensor& logits_TV,
                    const LossOptions& options) {
  const LossScale scale{{kLabels, 1.0 / golden.expect["ce_count"].get<double>()},
                        {kCoordSlots, 1.0 / golden.expect["coord_count"].get<double>()}};
  return row_loss(logits_TV, golden.supervision, test::identity(), options, scale);
}

}  // namespace

TEST(RowLossGolden, EqualsTheDoublePrecisionReference) {
  for (const GoldenCase& golden : golden_cases()) {
    SCOPED_TRACE(golden.name);
    const RowLoss loss = golden_loss(golden, golden.logits_TV, golden.options);
    const auto expect = [&](const char* key, double value) {
      const double reference = golden.expect[key];
      EXPECT_NEAR(value, reference, 2e-6 * std::max(1.0, std::abs(reference))) << key;
    };
    EXPECT_EQ(loss.by_kind.of("ce").count, golden.expect["ce_count"].get<int64_t>());
    EXPECT_EQ(loss.by_kind.of("coord").count, golden.expect["coord_count"].get<int64_t>());
    for (const char* kind : {"ce", "coord"}) expect(kind, loss.by_kind.of(kind).mean());
    for (const char* term : {"soft_ce", "w1", "gate"}) {
      EXPECT_EQ(loss.details.of(term).count, loss.by_kind.of("coord").count);
      expect(term, loss.details.of(term).mean());
    }
    expect("loss", loss.total.item<double>());
    const double coord = loss.by_kind.of("coord").sum;
    EXPECT_NEAR(loss.details.of("coord_prefix").sum + loss.details.of("coord_tail").sum, coord,
                1e-9 * std::abs(coord));
  }
}

TEST(RowLossGolden, GivesTheReferenceGradientAlsoThroughSanitisedLogits) {
  for (GoldenCase& golden : golden_cases()) {
    SCOPED_TRACE(golden.name);
    // one chunk keeps its gradient, several compute their logits again
    for (const int64_t chunk_positions : {1024, 1, 3}) {
      LossOptions options = golden.options;
      options.chunk_positions = chunk_positions;
      at::Tensor logits_TV = golden.logits_TV.clone().requires_grad_();
      torch::autograd::backward({golden_loss(golden, logits_TV, options).total}, {});
      const double error = (logits_TV.grad() - golden.grad_TV).abs().max().item<double>();
      EXPECT_LE(error, 2e-6 * std::max(1.0, golden.grad_TV.abs().max().item<double>()))
          << "chunks of " << chunk_positions;
    }
  }
}

TEST(RowLossGolden, BoundaryBinsAndBrokenLogitsAreAmongTheCases) {
  bool has_first = false, has_last = false, has_nan = false, has_masked_row = false;
  for (GoldenCase& golden : golden_cases()) {
    for (const int64_t bin : golden.supervision.by_kind[kCoordSlots].values) {
      has_first |= bin == 0;
      has_last |= bin == 999;
    }
    has_nan |= golden.logits_TV.isnan().any().item<bool>();
    has_masked_row |= golden.logits_TV.isneginf().all(1).any().item<bool>();
  }
  EXPECT_TRUE(has_first && has_last && has_nan && has_masked_row);
}

}  // namespace rematch
