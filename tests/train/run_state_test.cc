#include "learn/resume/run_state.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "run_states.h"
#include "state_text.h"
#include "support/capture.h"
#include "support/paths.h"
#include "support/state_files.h"

namespace rematch {
namespace {

using test::busy_run;
using test::kVocabSize;
using test::same_segments;
using test::some_segment;

RunState reread(const RunState& run) {
  return read_run_state(to_wire(run), "state.bin", kVocabSize);
}

void expect_same(const RunState& a, const RunState& b) {
  EXPECT_EQ(a.num_steps, b.num_steps);
  EXPECT_EQ(a.cursor, b.cursor);
  EXPECT_EQ(a.evaluation_pending, b.evaluation_pending);
  EXPECT_EQ(a.fingerprint, b.fingerprint);
  EXPECT_TRUE(same_segments(a.waiting, b.waiting));
  EXPECT_EQ(a.packing.num_rows, b.packing.num_rows);
  EXPECT_EQ(a.packing.num_segments, b.packing.num_segments);
  EXPECT_EQ(a.packing.num_tokens, b.packing.num_tokens);
  EXPECT_EQ(a.packing.padded_tokens, b.packing.padded_tokens);
  EXPECT_EQ(a.packing.num_underfilled, b.packing.num_underfilled);
  ASSERT_EQ(a.open.has_value(), b.open.has_value());
  if (!a.open) return;
  EXPECT_EQ(a.open->window.window_idx, b.open->window.window_idx);
  EXPECT_EQ(a.open->window.epoch, b.open->window.epoch);
  EXPECT_EQ(a.open->window.is_partial, b.open->window.is_partial);
  EXPECT_EQ(a.open->last_of_epoch, b.open->last_of_epoch);
  EXPECT_EQ(a.open->step0, b.open->step0);
  EXPECT_EQ(a.open->completed_steps, b.open->completed_steps);
  ASSERT_EQ(a.open->window.rows.size(), b.open->window.rows.size());
  for (size_t i = 0; i < a.open->window.rows.size(); ++i) {
    EXPECT_TRUE(same_segments(a.open->window.rows[i].segments, b.open->window.rows[i].segments))
        << i;
  }
}

/// The problem that reading gives.
Problem problem_with(const std::string& bytes, int64_t vocab_size = kVocabSize) {
  const UserError error =
      test::catch_user_error([&] { read_run_state(bytes, "state.bin", vocab_size); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  const Problem& problem = error.problems()[0];
  EXPECT_EQ(problem.error, "the training state of a checkpoint cannot be read");
  EXPECT_EQ(problem.where, "state.bin");
  EXPECT_NE(problem.fix.find("model.model"), std::string::npos);
  return problem;
}

/// Reads bytes that may be damaged.
/// @return true if they were read; any error must be of data
bool can_read(const std::string& bytes) {
  try {
    read_run_state(bytes, "state.bin", kVocabSize);
    return true;
  } catch (const UserError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_EQ(error.problems()[0].where, "state.bin");
    return false;
  }
}

/// A change of the second segment of a busy run's first row.
std::function<void(RunState&)> in_segment(const std::function<void(Segment&)>& change) {
  return [change](RunState& run) {
    std::shared_ptr<const Segment>& place = run.open->window.rows[0].segments[1];
    Segment segment = *place;
    change(segment);
    place = std::make_shared<const Segment>(segment);
  };
}

}  // namespace

TEST(RunState, RoundTripsABusyRun) { expect_same(reread(busy_run()), busy_run()); }

TEST(RunState, RoundTripsAFreshRun) {
  const RunState run;
  expect_same(reread(run), run);
  EXPECT_FALSE(reread(run).open);
}

TEST(RunState, WritingWhatWasReadGivesTheSameBytes) {
  const std::string bytes = to_wire(busy_run());
  EXPECT_EQ(to_wire(read_run_state(bytes, "state.bin", kVocabSize)), bytes);
}

TEST(RunState, ASegmentInTwoPlacesComesBackInBoth) {
  RunState run = busy_run();
  run.waiting = {run.open->window.rows[1].segments[0], some_segment(5)};
  expect_same(reread(run), run);
}

// When this fails, the bytes of a training state have changed: raise kVersion of
// model/checkpoint/state_files.cc, so that states of earlier versions are refused by number, and
// put both new values here.
TEST(RunState, ChangedBytesNeedANewVersion) {
  const test::TempDir dir;
  test::write_state_files(dir.path(), {to_wire(busy_run()), {}});
  const Json manifest = read_json_file(dir.file("training_state/manifest.json"));
  EXPECT_EQ(manifest["version"], 3);
  EXPECT_EQ(manifest["files"]["training_state/state.bin"]["xxh3"], "edd1a98e777ae5f9");
}

TEST(RunState, AnyBytesSurviveInNames) {
  RunState run;
  Segment segment = *some_segment(2);
  segment.where = std::string("d\xffta\n\"\0.jsonl:1", 14);
  segment.images[0].path = "/\xc3\x28/ä\\.jpg";
  run.waiting.push_back(std::make_shared<const Segment>(segment));
  expect_same(reread(run), run);
}

RC_GTEST_PROP(RunState, AnySegmentsComeBackAsTheyWere,
              (const std::vector<uint16_t>& waiting,
               const std::vector<std::vector<uint16_t>>& rows)) {
  const auto segments_of = [](const std::vector<uint16_t>& numbers) {
    std::vector<std::shared_ptr<const Segment>> segments;
    for (const int number : numbers) segments.push_back(some_segment(number));
    return segments;
  };
  RunState run = busy_run();
  run.waiting = segments_of(waiting);
  run.open->window.rows.clear();
  for (const auto& row : rows) {
    if (!row.empty()) run.open->window.rows.push_back({segments_of(row)});
  }
  const RunState again = reread(run);
  RC_ASSERT(same_segments(again.waiting, run.waiting));
  RC_ASSERT(again.open->window.rows.size() == run.open->window.rows.size());
  for (size_t i = 0; i < run.open->window.rows.size(); ++i) {
    RC_ASSERT(
        same_segments(again.open->window.rows[i].segments, run.open->window.rows[i].segments));
  }
}

TEST(RunState, StatesThatNoRunCanContinueFromAreRefused) {
  const std::vector<std::pair<const char*, std::function<void(RunState&)>>> changes = {
      {"num_steps", [](RunState& run) { run.num_steps = 10; }},
      {"negative num_steps", [](RunState& run) { run = {.num_steps = -1}; }},
      {"cursor before the window", [](RunState& run) { run.cursor.window_idx = 6; }},
      {"cursor before the epoch", [](RunState& run) { run.cursor.epoch = 0; }},
      {"window_idx", [](RunState& run) { run.open->window.window_idx = -1; }},
      {"epoch", [](RunState& run) { run.open->window.epoch = -1; }},
      {"step0", [](RunState& run) { run.open->step0 = 12; }},
      {"step0 and completed_steps",
       [](RunState& run) {
         run.open->step0 = 12;
         run.open->completed_steps = -1;
       }},
      {"negative step0",
       [](RunState& run) {
         run.open->step0 = -1;
         run.open->completed_steps = 12;
       }},
      {"completed_steps", [](RunState& run) { run.open->completed_steps = 1; }},
      {"a row without segments", [](RunState& run) { run.open->window.rows[0].segments.clear(); }},
      {"a waiting segment without tokens",
       [](RunState& run) { run.waiting[0] = std::make_shared<Segment>(); }},
      {"token -1", in_segment([](Segment& segment) { segment.token_ids[3] = -1; })},
      {"token", in_segment([](Segment& segment) { segment.token_ids[3] = kVocabSize; })},
      {"label -1", in_segment([](Segment& segment) { segment.labels[6] = -1; })},
      {"label", in_segment([](Segment& segment) { segment.labels[6] = kVocabSize; })},
      {"label of the prompt",
       in_segment([](Segment& segment) { segment.labels[1] = segment.token_ids[1]; })},
      {"fewer labels", in_segment([](Segment& segment) { segment.labels.pop_back(); })},
      {"prompt_len", in_segment([](Segment& segment) { segment.prompt_len = 100; })},
      {"negative prompt_len", in_segment([](Segment& segment) { segment.prompt_len = -1; })},
      {"negative prefix_len", in_segment([](Segment& segment) { segment.prefix_len = -1; })},
      {"append_len", in_segment([](Segment& segment) { segment.append_len += 2; })},
      {"sum of lengths beyond an int", in_segment([](Segment& segment) {
         segment.prefix_len = segment.append_len = std::numeric_limits<int>::max();
       })},
      {"no slot position",
       in_segment([](Segment& segment) { segment.slots[kCoordSlots][0].position = 1 << 30; })},
      {"slot in the prompt",
       in_segment([](Segment& segment) { segment.slots[kCoordSlots][0].position = 0; })},
      {"bin",
       in_segment([](Segment& segment) { segment.slots[kCoordSlots][0].target = kNumBins; })},
      {"image without a path", in_segment([](Segment& segment) { segment.images[0].path = ""; })},
      {"grid", in_segment([](Segment& segment) { segment.images[0].grid_thw[2] = 0; })},
      {"grid beyond an int",
       in_segment([](Segment& segment) { segment.images[0].grid_thw[2] = int64_t{1} << 40; })},
      {"crop", in_segment([](Segment& segment) { segment.images[0].change.crop_px[0] = -3; })},
      {"crop beyond an int", in_segment([](Segment& segment) {
         segment.images[0].change.crop_px[2] = int64_t{1} << 62;
       })},
      {"color", in_segment([](Segment& segment) { segment.images[0].change.color[1] = -1; })},
      {"orientation",
       in_segment([](Segment& segment) { segment.images[0].change.orientation = 16; })},
  };
  for (const auto& [name, change] : changes) {
    SCOPED_TRACE(name);
    RunState run = busy_run();
    change(run);
    problem_with(to_wire(run));
  }
}

TEST(RunState, AnErrorNamesTheSampleAndTheVocabulary) {
  const Problem problem = problem_with(to_wire(busy_run()), 20);
  EXPECT_EQ(problem.what, "sample 3 (train.jsonl:4) has a token outside the vocabulary of 20");
}

TEST(RunState, EveryTruncationIsRefused) {
  const std::string bytes = to_wire(busy_run());
  ASSERT_TRUE(can_read(bytes));
  for (size_t size = 0; size < bytes.size(); ++size)
    ASSERT_FALSE(can_read(bytes.substr(0, size))) << size;
  EXPECT_EQ(problem_with(bytes + "x").what,
            std::to_string(bytes.size() + 1).insert(0, "its ") + " bytes are not a training state");
}

TEST(RunState, AHugeNumberAnywhereIsReadOrRefused) {
  const std::string bytes = to_wire(busy_run());
  for (const uint64_t number :
       {uint64_t{1} << 31, uint64_t{1} << 40, ~uint64_t{0} / 2, ~uint64_t{0}}) {
    for (size_t at = 0; at + sizeof number <= bytes.size(); ++at) {
      std::string damaged = bytes;
      damaged.replace(at, sizeof number, reinterpret_cast<const char*>(&number), sizeof number);
      can_read(damaged);
    }
  }
}

RC_GTEST_PROP(RunState, AnyChangedBytesAreReadOrRefusedAndNeverCrash,
              (uint32_t at, uint8_t byte, uint8_t kind)) {
  std::string bytes = to_wire(busy_run());
  const size_t offset = at % bytes.size();
  if (kind % 4 == 0) bytes[offset] = static_cast<char>(byte);
  if (kind % 4 == 1) bytes[offset] = static_cast<char>(bytes[offset] ^ (1 << byte % 8));
  if (kind % 4 == 2) bytes.erase(offset, 1 + byte % 16);
  if (kind % 4 == 3) bytes.insert(offset, bytes.substr(byte % bytes.size(), 1 + byte % 8));
  can_read(bytes);
}

TEST(SavedFingerprint, IsReadWithoutTheModel) {
  const test::TempDir dir;
  test::write_state_files(dir.path(), {to_wire(busy_run()), {}});
  EXPECT_EQ(read_saved_fingerprint(dir.path()), busy_run().fingerprint);
  dir.write("training_state/state.bin", "damaged");
  const Problem problem =
      test::catch_user_error([&] { read_saved_fingerprint(dir.path()); }).problems()[0];
  EXPECT_EQ(problem.where, dir.file("training_state/state.bin"));
}

TEST(LoadedCheckpoint, HoldsTheFilesOfACheckpointAgainstEachOther) {
  const test::TempDir dir;
  const std::string path = dir.file("checkpoint-11");
  std::filesystem::create_directories(path);
  test::write_state_files(path, {to_wire(busy_run()), {{"a.exp_avg", at::ones({2})}}});
  // no trainer_state.json
  EXPECT_EQ(test::catch_user_error([&] { read_checkpoint(path, kVocabSize); }).kind(),
            ErrorKind::kData);
  TrainerState trainer;
  trainer.progress.global_step = 11;
  trainer.progress.best_metric = 0.1;
  write_file_atomic(path + "/trainer_state.json", to_json(trainer));
  const LoadedCheckpoint loaded = read_checkpoint(path, kVocabSize);
  expect_same(loaded.run, busy_run());
  EXPECT_EQ(loaded.progress.global_step, 11);
  EXPECT_EQ(loaded.progress.best_metric, 0.1);
  ASSERT_EQ(loaded.optimizer.size(), 1u);
  trainer.progress.global_step = 12;
  write_file_atomic(path + "/trainer_state.json", to_json(trainer));
  const Problem problem =
      test::catch_user_error([&] { read_checkpoint(path, kVocabSize); }).problems()[0];
  EXPECT_EQ(problem.what, "global_step 12, but the training state is from step 11");
}

}  // namespace rematch
