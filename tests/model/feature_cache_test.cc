#include "model/feature_cache.h"

#include <gtest/gtest.h>

#include "model/oracle_cases.h"
#include "model/row.h"
#include "model/tiny_checkpoint.h"

namespace rematch {
namespace {

std::shared_ptr<Model> frozen_model() {
  const auto model = Model::load(test::tiny_tied(), {});
  for (const NamedParameter& parameter : model->parameters())
    parameter.tensor.set_requires_grad(!parameter.name.starts_with("model.visual."));
  return model;
}

VisionInput images(const Model& model) {
  return test::OracleAnswers(test::tiny_tied())
      .images(test::OracleAnswers::cases().back(), model.description());
}

void expect_same_features(const VisionFeatures& found, const VisionFeatures& wanted) {
  EXPECT_TRUE(at::equal(found.embeds_MH, wanted.embeds_MH));
  ASSERT_EQ(found.deepstack_MH.size(), wanted.deepstack_MH.size());
  for (size_t i = 0; i < wanted.deepstack_MH.size(); ++i)
    EXPECT_TRUE(at::equal(found.deepstack_MH[i], wanted.deepstack_MH[i]));
}

/// Changes a weight of the tower without a trace in its version: features that are computed again
/// have other bits, cached ones do not.
void change_unseen(const Model& model) {
  *model.parameter("model.visual.merger.linear_fc2.bias").data_ptr<float>() += 1;
}

}  // namespace

TEST(FeatureCache, GivesTheBitsOfTheTowerAndComputesARowOnce) {
  const auto model = frozen_model();
  const VisionInput row = images(*model);
  const VisionFeatures wanted = model->encode_images(row);
  FeatureCache cache;
  expect_same_features(cache.features(*model, row), wanted);
  EXPECT_EQ(cache.bytes(),
            static_cast<int64_t>(wanted.embeds_MH.nbytes() * (1 + wanted.deepstack_MH.size())));
  change_unseen(*model);
  expect_same_features(cache.features(*model, row), wanted);
}

TEST(FeatureCache, DistinguishesRowsByTheirPixels) {
  const auto model = frozen_model();
  const VisionInput row = images(*model);
  VisionInput other = row;
  other.pixel_values_NC = row.pixel_values_NC.clone();
  other.pixel_values_NC[0][3] += 1;
  FeatureCache cache;
  cache.features(*model, row);
  expect_same_features(cache.features(*model, other), model->encode_images(other));
}

TEST(FeatureCache, DoesNotCacheFeaturesWithGradient) {
  const auto model = frozen_model();
  model->parameter("model.visual.merger.linear_fc2.weight").set_requires_grad(true);
  FeatureCache cache;
  EXPECT_TRUE(cache.features(*model, images(*model)).embeds_MH.requires_grad());
  EXPECT_EQ(cache.bytes(), 0);
}

TEST(FeatureCache, IsEmptyAfterTheWindowAndAfterAChangeOfWeights) {
  const auto model = frozen_model();
  const VisionInput row = images(*model);
  FeatureCache cache;
  cache.features(*model, row);
  cache.clear();
  EXPECT_EQ(cache.bytes(), 0);
  const VisionFeatures before = cache.features(*model, row);
  {
    const at::NoGradGuard no_grad;
    model->parameter("model.visual.merger.linear_fc2.bias").add_(1);
  }
  const VisionFeatures after = cache.features(*model, row);
  EXPECT_FALSE(at::equal(after.embeds_MH, before.embeds_MH));
  expect_same_features(after, model->encode_images(row));
}

// spec: buffer-05 buffer-14
TEST(FeatureCache, ReuseSurvivesAForwardPassThatWritesIntoItsFeatures) {
  const auto model = frozen_model();
  const VisionInput row = images(*model);
  const VisionFeatures wanted = model->encode_images(row);
  FeatureCache cache;
  for (int use = 0; use < 3; ++use) {
    const VisionFeatures given = cache.features(*model, row);
    expect_same_features(given, wanted);
    if (use == 0) change_unseen(*model);
    at::Tensor(given.embeds_MH).add_(1);
    for (const at::Tensor& feature : given.deepstack_MH) at::Tensor(feature).zero_();
  }
}

TEST(FeatureCache, StaysBelowItsBound) {
  const auto model = frozen_model();
  FeatureCache cache({.max_bytes = 64});
  cache.features(*model, images(*model));
  EXPECT_EQ(cache.bytes(), 0);
}

TEST(FeatureCache, IsUnusedWithoutGradients) {
  const auto model = frozen_model();
  const at::NoGradGuard no_grad;
  FeatureCache cache;
  cache.features(*model, images(*model));
  EXPECT_EQ(cache.bytes(), 0);
}

TEST(FrozenTower, RunsWithoutAGraph) {
  const auto model = frozen_model();
  const VisionFeatures features = model->encode_images(images(*model));
  EXPECT_FALSE(features.embeds_MH.requires_grad());
  for (const at::Tensor& feature : features.deepstack_MH) EXPECT_FALSE(feature.requires_grad());
}

}  // namespace rematch
