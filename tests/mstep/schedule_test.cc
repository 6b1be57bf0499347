// Against transformers.get_scheduler (tests/golden/mstep_schedules.json.how).
#include "learn/mstep/optim/schedule.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

std::optional<double> keyword(const Json& kwargs, const char* name) {
  return kwargs.contains(name) ? std::optional<double>(kwargs[name].get<double>()) : std::nullopt;
}

Schedule schedule_of(const Json& value) {
  const Json& kwargs = value["kwargs"];
  return Schedule({.type = *value_of<ScheduleType>(value["type"].get<std::string>()),
                   .warmup_steps = value["num_warmup_steps"],
                   .num_cycles = keyword(kwargs, "num_cycles"),
                   .min_lr = keyword(kwargs, "min_lr"),
                   .min_lr_rate = keyword(kwargs, "min_lr_rate"),
                   .warmup_lr_rate = keyword(kwargs, "warmup_lr_rate")},
                  value["learning_rate"], value["num_training_steps"]);
}

}  // namespace

TEST(Schedule, EqualsTransformersAtEveryStepAndBeyondTheEnd) {
  std::set<std::string> seen;
  for (const Json& value : read_json_file(test::source_path("tests/golden/mstep_schedules.json"))) {
    SCOPED_TRACE(value["type"].get<std::string>() + value["kwargs"].dump());
    const Schedule schedule = schedule_of(value);
    for (size_t step = 0; step < value["factors"].size(); ++step) {
      EXPECT_NEAR(schedule.factor(static_cast<int64_t>(step)), value["factors"][step].get<double>(),
                  1e-12)
          << "step " << step;
    }
    seen.insert(value["type"].get<std::string>());
  }
  const std::vector<std::string> all = all_names<ScheduleType>();
  EXPECT_EQ(seen, std::set<std::string>(all.begin(), all.end()));
}

TEST(Schedule, AFloorInFullNeedsALearningRate) {
  const UserError error = test::catch_user_error(
      [] { const Schedule schedule({.type = ScheduleType::kCosineWithMinLr, .min_lr = 0.1}, 0); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_NE(error.problems()[0].error.find("positive"), std::string::npos);
}

TEST(NumWarmupSteps, StepsTakePrecedenceOverTheRatioWhichRoundsUp) {
  EXPECT_EQ(num_warmup_steps(7, 0.5, 100), 7);
  EXPECT_EQ(num_warmup_steps(0, 0.05, 101), 6);
  EXPECT_EQ(num_warmup_steps(0, 0.0, 101), 0);
}

}  // namespace rematch
