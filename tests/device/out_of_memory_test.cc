// A device without memory left, in each phase of a training.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "e2e/program.h"
#include "engine/ranks/group.h"
#include "program/assembly/run.h"
#include "program/cli/out_of_memory.h"
#include "support/pretend_device.h"

namespace rematch {
namespace {

using ::testing::HasSubstr;

/// The message a user gets when the device is full in a phase.
Problem told_in(const std::string& phase, const std::string& backend = "hf") {
  test::Program program;
  const std::string config = program.config(
      "training: {max_steps: 1, eval_strategy: steps, eval_steps: 1}\n"
      "custom: {extra: {rollout_matching: {rollout_backend: " +
      backend + ", max_new_tokens: 8}}}\n");
  test::set_pretend_full([&] { return alone().phase() == phase; });
  std::ostringstream out, err;
  Terminal terminal(out, err, {});
  Problem problem;
  alone().enter("start");
  try {
    run_training(load_config(config, {"training.output_dir=" + program.dir().file("out")}),
                 {.device = test::kPretendName, .terminal = terminal});
    ADD_FAILURE() << "nothing is allocated in the phase " << phase;
  } catch (const UserError& error) {
    problem = error.problems().front();
  } catch (const std::exception& error) {
    EXPECT_TRUE(is_out_of_memory(error)) << error.what();
    problem = out_of_memory(error, alone().phase());
  }
  test::set_pretend_full(nullptr);
  return problem;
}

}  // namespace

TEST(DeviceOutOfMemory, NamesThePhaseAndWhatWasAskedFor) {
  test::pretend_device();
  for (const char* phase : {"start", "rollout", "update", "evaluate"}) {
    SCOPED_TRACE(phase);
    const Problem problem = told_in(phase);
    EXPECT_EQ(problem.where, std::string("this machine, in the phase ") + phase);
    EXPECT_THAT(problem.what, HasSubstr("Tried to allocate"));
    EXPECT_THAT(problem.what, HasSubstr("has a total capacity of"));
    EXPECT_THAT(problem.fix, HasSubstr("rematch plan CONFIG"));
  }
  EXPECT_THAT(told_in("rollout", "native").what, HasSubstr("Tried to allocate"))
      << "its cache has a separate message";
}

}  // namespace rematch
