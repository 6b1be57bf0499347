#include "tools/plan/parameters.h"

#include <gtest/gtest.h>

#include <map>

#include "base/file.h"
#include "model/checkpoint/safetensors_header.h"
#include "plan/models.h"
#include "support/capture.h"

namespace rematch {
namespace {

TEST(PlanParameters, EqualTransformersForPublicModels) {
  for (const test::PublicModel& model : test::kPublicModels) {
    SCOPED_TRACE(model.name);
    const TrainedParameters trained = trained_parameters(test::request_of(model, 80).model, {});
    const ParameterCounts& counts = trained.counts;
    EXPECT_EQ(counts.total, model.total);
    EXPECT_EQ(counts.vision, model.vision);
    EXPECT_EQ(counts.text, model.total - model.vision);
    EXPECT_EQ(trained.num_values(), model.total);
  }
}

TEST(PlanParameters, AreThoseOfTheFilesByNameAndSize) {
  for (const char* name : {"tiny_tied", "tiny_untied"}) {
    SCOPED_TRACE(name);
    const MappedFile file(test::tiny_dir(name) + "/model.safetensors");
    std::map<std::string, int64_t> stored, found;
    for (const SafetensorsEntry& entry :
         parse_safetensors_header(file.bytes(), file.path()).entries) {
      int64_t count = 1;
      for (const int64_t size : entry.shape) count *= size;
      stored[entry.name] = count;
    }
    for (const ParameterSize& parameter : parameter_sizes(describe_model(test::tiny_dir(name))))
      found[parameter.name] = parameter.num_values;
    EXPECT_EQ(found, stored);
  }
}

TEST(PlanParameters, FrozenPartsAreNotTrained) {
  const ModelDescription model = describe_model(test::tiny_dir());
  const ParameterCounts all = trained_parameters(model, {}).counts;
  TunerSettings tuner;
  tuner.freeze = {.llm = false, .vit = true, .aligner = true};
  EXPECT_EQ(trained_parameters(model, tuner).num_values(), all.text);
  EXPECT_FALSE(trained_parameters(model, tuner).reaches_mergers);
  tuner.freeze = {.llm = true, .vit = false, .aligner = false};
  const TrainedParameters trained = trained_parameters(model, tuner);
  EXPECT_EQ(trained.num_full, all.vision);
  EXPECT_FALSE(trained.trains_head);
  EXPECT_TRUE(trained.reaches_mergers);
}

TEST(PlanParameters, AnAdapterHasRankTimesTheSidesOfEveryLinear) {
  const ModelDescription model = describe_model(test::tiny_dir());
  TunerSettings tuner{.train_type = TrainType::kLora};
  tuner.lora.rank = 3;
  tuner.targets.target_modules = {"gate_proj"};
  EXPECT_EQ(trained_parameters(model, tuner).num_values(),
            3 * 3 * (32 + 64));  // three layers of 32 → 64
  tuner.lora.use_dora = true;
  const TrainedParameters trained = trained_parameters(model, tuner);
  EXPECT_EQ(trained.num_adapter, 3 * (3 * (32 + 64) + 64));
  EXPECT_EQ(trained.num_adapted, 3 * 32 * 64);
  EXPECT_EQ(trained.num_full, 0);
}

TEST(PlanParameters, AnAdapterTrainsTokenRows) {
  const ModelDescription model = describe_model(test::tiny_dir());
  TunerSettings tuner{.train_type = TrainType::kLora};
  const int64_t without = trained_parameters(model, tuner).num_adapter;
  tuner.targets.trainable_token_indices = {"coord_tokens", "17"};
  EXPECT_EQ(trained_parameters(model, tuner).num_adapter - without, 1001 * 32);
}

TEST(PlanParameters, TargetsThatMatchNothingAreRefused) {
  TunerSettings tuner{.train_type = TrainType::kLora};
  tuner.targets.target_modules = {"gate_prj"};
  const UserError error =
      test::catch_user_error([&] { trained_parameters(describe_model(test::tiny_dir()), tuner); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
}

}  // namespace
}  // namespace rematch
