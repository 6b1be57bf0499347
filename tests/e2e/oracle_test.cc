// transformers reads the checkpoints that we write; skipped with a reason where transformers is not
// installed.
#include <gtest/gtest.h>

#include "e2e/program.h"

namespace rematch {
namespace {

constexpr const char* kLoad = R"(
import sys
from transformers import AutoTokenizer, Qwen3VLForConditionalGeneration
from transformers.trainer_callback import TrainerState
directory = sys.argv[1]
model, info = Qwen3VLForConditionalGeneration.from_pretrained(directory, output_loading_info=True)
assert not any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
AutoTokenizer.from_pretrained(directory)
state = TrainerState.load_from_json(directory + "/trainer_state.json")
assert state.global_step == 1 and state.log_history and "loss" in state.log_history[0], state
print("loaded", sum(p.numel() for p in model.parameters()))
)";

}  // namespace

TEST(Oracle, TransformersLoadsACheckpointAsItIs) {
  const std::string python = test::source_path(".venv/bin/python");
  if (test::run_command(python + " -c 'import transformers'").exit_code != 0)
    GTEST_SKIP() << "no transformers in .venv (scripts/setup --oracles)";
  test::Program program;
  const test::ProcessResult trained =
      program.run("train " + program.config("training: {max_steps: 1}\n"));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const std::string script = program.dir().write("load.py", kLoad);
  const test::ProcessResult loaded =
      test::run_command("HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 " + python + " " + script + " " +
                        program.run_dir() + "/checkpoint-1");
  EXPECT_EQ(loaded.exit_code, 0) << loaded.err;
  EXPECT_NE(loaded.out.find("loaded"), std::string::npos);
}

}  // namespace rematch
