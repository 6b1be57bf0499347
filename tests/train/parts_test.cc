// Checkpoints that several ranks write, and what a resumed rank takes of them.

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "run_states.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

std::shared_ptr<const Segment> named(int64_t id) {
  auto made = std::make_shared<Segment>();
  made->sample_id = id;
  return made;
}

/// Rank `rank` of `size` in a window of `num_rows` rows, each of one segment that is named after
/// its place in the window.
RunState part_of(int rank, int size, int64_t num_rows) {
  RunState run;
  run.num_steps = 3;
  run.cursor = {.epoch = 0, .next_window_in_epoch = 1, .window_idx = 1};
  run.open.emplace();
  run.packing.num_rows = rank + 1;
  for (int64_t row = rank; row < num_rows; row += size)
    run.open->window.rows.push_back({{named(row)}});
  return run;
}

std::vector<RunState> parts_of(int size, int64_t num_rows) {
  std::vector<RunState> parts;
  for (int rank = 0; rank < size; ++rank) parts.push_back(part_of(rank, size, num_rows));
  return parts;
}

std::vector<int64_t> places(const RunState& run) {
  std::vector<int64_t> ids;
  for (const PackedRow& row : run.open->window.rows) ids.push_back(row.segments[0]->sample_id);
  return ids;
}

}  // namespace

TEST(Parts, AnOpenWindowIsRedistributedToAnyNumberOfRanks) {
  for (const int before : {1, 2, 3, 4}) {
    for (const int now : {1, 2, 3, 4}) {
      for (int rank = 0; rank < now; ++rank) {
        const RunState run = select_shard(parts_of(before, 7), {rank, now}, "checkpoint-3");
        EXPECT_EQ(places(run), places(part_of(rank, now, 7))) << before << " to " << now;
        EXPECT_EQ(run.num_steps, 3);
      }
    }
  }
  EXPECT_EQ(select_shard(parts_of(3, 7), {0, 2}, "").packing.num_rows, 6);
  EXPECT_EQ(select_shard(parts_of(3, 7), {1, 2}, "").packing.num_rows, 0);
}

TEST(Parts, CarryBuffersStayWithTheirNumberOfRanks) {
  std::vector<RunState> parts = parts_of(2, 4);
  parts[1].waiting = {named(8), named(9)};
  EXPECT_EQ(select_shard(parts, {1, 2}, "checkpoint-3").waiting.size(), 2u);
  const Problem problem =
      test::catch_user_error([&] { select_shard(parts, {0, 4}, "checkpoint-3"); }).problems()[0];
  EXPECT_EQ(problem.where, "checkpoint-3");
  EXPECT_EQ(problem.what, "written by 2 ranks, 2 segments wait in their carry buffers; now 4");
  EXPECT_NE(problem.fix.find("resume with 2 ranks"), std::string::npos);
}

TEST(Parts, OfDifferentStepsDoNotMatch) {
  std::vector<RunState> parts = parts_of(2, 4);
  parts[1].num_steps = 2;
  EXPECT_EQ(test::catch_user_error([&] { select_shard(parts, {0, 2}, "checkpoint-3"); }).kind(),
            ErrorKind::kData);
}

TEST(Parts, EveryFileOfEveryRankIsCovered) {
  const test::TempDir dir;
  const std::string path = dir.file("checkpoint-3");
  std::filesystem::create_directories(path);
  for (int rank = 0; rank < 2; ++rank) {
    write_state_shard(path,
                      {.run = "state", .optimizer = {{"w" + std::to_string(rank), at::ones({3})}}},
                      {rank, 2});
  }
  write_state_manifest(path, 2);
  const std::vector<StateFiles> parts = read_state_shards(path);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[1].optimizer[0].first, "w1");
  std::filesystem::remove(path + "/training_state/optimizer-00001-of-00002.safetensors");
  const Problem problem = test::catch_user_error([&] { verify_state_files(path); }).problems()[0];
  EXPECT_NE(problem.where.find("optimizer-00001-of-00002.safetensors"), std::string::npos);
}

}  // namespace rematch
