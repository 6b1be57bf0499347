#include <gtest/gtest.h>

#include <sstream>

#include "e2e/program.h"

namespace rematch {

// Windows come and go; what stays is what the run needs. Resident size is read from the kernel
// while the program works. The weights hardly move and every window holds the same two samples, so
// that the windows at both ends are of the same size. A step holds its activations for a moment and
// freed memory goes back every 16th window: the most that was seen in twenty windows counts.
TEST(Memory, FiveHundredWindowsTakeNoMoreThanTwenty) {
  test::Program program;
  const std::string config = program.config(
      "training: {max_steps: 530, packing: true, per_device_train_batch_size: 2, "
      "gradient_accumulation_steps: 1, learning_rate: 1.0e-7, "
      "logging_steps: 10, "
      "save_strategy: \"no\", save_last_epoch: false}\n"
      "custom: {train_sample_limit: 2, extra: {rollout_matching: {max_new_tokens: 16, "
      "post_rollout_pack_scope: window}}}\n");
  const std::string log = program.run_dir() + "/logging.jsonl";
  const test::ProcessResult result = test::run_command(
      "cd " + program.dir().path() + " && " + test::binary_path("bin/rematch") + " train " +
      config + " & pid=$!\n" + "lines() { cat " + log + " 2>/dev/null | wc -l; }\n" +
      "peak_from() { while [ \"$(lines)\" -lt $1 ]; do kill -0 $pid || exit 1; sleep 0.05; done;\n"
      "  while [ \"$(lines)\" -lt $(($1 + 2)) ]; do awk '/VmRSS/ {print $2}' /proc/$pid/status; "
      "sleep 0.01; done |"
      " sort -n | tail -1; }\n"
      "peak_from 2; peak_from 50; wait $pid");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::istringstream sizes(result.out);
  double after_20 = 0, after_500 = 0;
  ASSERT_TRUE(sizes >> after_20 >> after_500) << result.out;
  // Seen: 186 to 190 MB in every twenty windows of the run.
  EXPECT_LE(after_500, 1.02 * after_20)
      << after_20 << " kB at most after 20 windows, " << after_500 << " kB after 500";
  RecordProperty("kb_after_20_windows", static_cast<int>(after_20));
  RecordProperty("kb_after_500_windows", static_cast<int>(after_500));
}

// A step of Qwen3.5-0.8B grew by two gigabytes a row where small allocations could not take memory
// from large free blocks (src/program/cli/allocator.cc). Small models do not show it.
TEST(Memory, SmallAllocationsMayTakeMemoryFromLargeFreeBlocks) {
  const test::ProcessResult result = test::run_command("MALLOC_CONF=stats_print:true " +
                                                       test::binary_path("bin/rematch --version"));
  EXPECT_NE((result.out + result.err).find("opt.lg_extent_max_active_fit: 20"), std::string::npos);
}

}  // namespace rematch
