#include "resume/run_state.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "run_states.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

using test::busy_run;
using test::kVocabSize;
using test::same_segments;
using test::some_segment;

RunState reread(const RunState& run) {
  return to_run_state(to_state_files(run, {}), "state.json", kVocabSize);
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

/// The problem that reading a changed state gives.
Problem problem_with(const std::function<void(Json&, StateFiles&)>& change,
                     int64_t vocab_size = kVocabSize) {
  StateFiles state = to_state_files(busy_run(), {});
  Json root = parse_json(state.document, "state.json");
  change(root, state);
  state.document = python_json(root, 2);
  const UserError error =
      test::catch_user_error([&] { to_run_state(state, "state.json", vocab_size); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  return error.problems()[0];
}

at::Tensor& tensor_of(StateFiles& state, const std::string& name) {
  for (auto& [other, tensor] : state.segments) {
    if (other == name) return tensor;
  }
  throw std::runtime_error(name);
}

}  // namespace

TEST(RunState, RoundTripsABusyRun) { expect_same(reread(busy_run()), busy_run()); }

TEST(RunState, RoundTripsAFreshRun) {
  const RunState run;
  expect_same(reread(run), run);
  EXPECT_FALSE(reread(run).open);
}

TEST(RunState, WritingWhatWasReadGivesTheSameBytes) {
  const StateFiles first = to_state_files(busy_run(), {});
  const StateFiles second = to_state_files(to_run_state(first, "state.json", kVocabSize), {});
  EXPECT_EQ(first.document, second.document);
  for (size_t i = 0; i < first.segments.size(); ++i)
    EXPECT_TRUE(at::equal(first.segments[i].second, second.segments[i].second));
}

TEST(RunState, ASegmentInTwoPlacesIsStoredOnceAndSharedAgain) {
  RunState run = busy_run();
  run.waiting = {run.open->window.rows[1].segments[0], some_segment(5)};
  const StateFiles state = to_state_files(run, {});
  EXPECT_EQ(parse_json(state.document, "")["segments"].size(), 4u);
  const RunState again = to_run_state(state, "state.json", kVocabSize);
  EXPECT_EQ(again.waiting[0], again.open->window.rows[1].segments[0]);
  expect_same(again, run);
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

TEST(RunState, EveryMissingKeyIsNamed) {
  const Json root = parse_json(to_state_files(busy_run(), {}).document, "");
  const std::function<void(const Json&, const Json::json_pointer&)> visit =
      [&](const Json& value, const Json::json_pointer& path) {
        for (const auto& item : value.items()) {
          const Json::json_pointer here =
              value.is_array() ? path / std::stoul(item.key()) : path / item.key();
          // Written only where a picture is changed (BEHAVIOUR 21.2).
          const bool is_optional = item.key() == "change";
          if (value.is_object() && !is_optional &&
              path.to_string().rfind("/fingerprint/", 0) != 0) {
            const Problem problem =
                problem_with([&](Json& changed, StateFiles&) { changed[path].erase(item.key()); });
            EXPECT_NE((problem.where + problem.what).find(item.key()), std::string::npos)
                << here.to_string() << ": " << problem.where << ": " << problem.what;
          }
          if (item.value().is_structured()) visit(item.value(), here);
        }
      };
  visit(root, Json::json_pointer());
}

TEST(RunState, EveryValueOfAnotherTypeIsRefused) {
  const Json root = parse_json(to_state_files(busy_run(), {}).document, "").flatten();
  for (const auto& item : root.items()) {
    const Json::json_pointer place(item.key());
    for (const Json& wrong : {Json(nullptr), Json(Json::array({1})), Json(1.5), Json(-7), Json("x"),
                              Json(18446744073709551615ull)}) {
      // These stand for themselves: any text, the window that may be absent.
      if (item.value().is_string() && wrong.is_string()) continue;
      SCOPED_TRACE(item.key() + " = " + wrong.dump());
      problem_with([&](Json& changed, StateFiles&) { changed[place] = wrong; });
    }
  }
}

TEST(RunState, AnUnknownKeyIsRefused) {
  for (const char* place : {"/x", "/cursor/x", "/packing/x", "/open_window/x", "/segments/0/x",
                            "/segments/1/images/0/x", "/fingerprint/x"}) {
    const Problem problem =
        problem_with([&](Json& root, StateFiles&) { root[Json::json_pointer(place)] = 1; });
    EXPECT_EQ(problem.error, "unknown field \"x\"") << place;
  }
}

TEST(RunState, NumbersThatContradictEachOtherAreRefused) {
  const std::vector<std::pair<const char*, Json>> changes = {
      {"/version", 2},
      {"/num_steps", 10},
      {"/cursor/window_idx", 6},
      {"/cursor/epoch", 0},
      {"/open_window/step0", 12},
      {"/open_window/completed_steps", 1},
      {"/segments/0/num_tokens", 9},
      {"/segments/0/num_tokens", 0},
      {"/segments/6/num_tokens", 100},
      {"/segments/0/num_tokens", 1ll << 40},
      {"/segments/0/prompt_len", 100},
      {"/segments/1/prompt_len", 12},
      {"/segments/0/num_coord_slots", 0},
      {"/segments/0/num_coord_slots", 1ll << 60},
      {"/segments/1/images/0/grid_thw", {1, 2}},
      {"/segments/1/images/0/grid_thw", {1, 2, 0}},
      {"/segments/1/images/0/path", ""},
      {"/segments/1/images/0/path", {{"hex", "abc"}}},
      {"/segments/1/images/0/path", {{"hex", "zz"}}},
      {"/waiting/0", 7},
      {"/waiting/0", -1},
      {"/waiting/0", 4},
      {"/waiting", Json::array()},
      {"/open_window/rows/0", Json::array()},
      {"/open_window/rows/1/0", 0},
      {"/open_window", nullptr}};
  for (const auto& [place, value] : changes) {
    SCOPED_TRACE(std::string(place) + " = " + value.dump());
    const Problem problem = problem_with([&place = place, &value = value](Json& root, StateFiles&) {
      root[Json::json_pointer(place)] = value;
    });
    EXPECT_EQ(problem.error, "the training state of a checkpoint cannot be read");
    EXPECT_EQ(problem.where.rfind("state.json: ", 0), 0u) << problem.where;
  }
}

TEST(RunState, TensorsThatDoNotFitAreRefused) {
  const std::vector<std::function<void(Json&, StateFiles&)>> changes = {
      [](Json&, StateFiles& state) { state.segments.clear(); },
      [](Json&, StateFiles& state) { state.segments.emplace_back("more", at::zeros({1})); },
      [](Json&, StateFiles& state) {
        tensor_of(state, "token_ids") = tensor_of(state, "token_ids").slice(0, 1);
      },
      [](Json&, StateFiles& state) {
        tensor_of(state, "token_ids") = tensor_of(state, "token_ids").to(at::kLong);
      },
      [](Json&, StateFiles& state) {
        tensor_of(state, "token_ids") = tensor_of(state, "token_ids").unsqueeze(0);
      },
      [](Json&, StateFiles& state) { tensor_of(state, "token_ids")[3] = -1; },
      [](Json&, StateFiles& state) { tensor_of(state, "token_ids")[3] = kVocabSize; },
      [](Json&, StateFiles& state) { tensor_of(state, "is_label")[0] = true; },
      [](Json&, StateFiles& state) {
        tensor_of(state, "is_label") = tensor_of(state, "is_label").to(at::kByte);
      },
      [](Json&, StateFiles& state) {
        tensor_of(state, "coord_slots") = at::zeros({7, 2}, at::kInt);
      },
      [](Json&, StateFiles& state) { tensor_of(state, "coord_slots")[0][0] = 0; },
      [](Json&, StateFiles& state) { tensor_of(state, "coord_slots")[0][0] = 1 << 30; },
      [](Json&, StateFiles& state) { tensor_of(state, "coord_slots")[0][1] = kNumBins; },
      [](Json&, StateFiles& state) { tensor_of(state, "coord_slots")[0][2] = 2; },
      [](Json&, StateFiles& state) {
        tensor_of(state, "coord_slots") = at::zeros({8, 3}, at::kInt);
      },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(i);
    problem_with(changes[i]);
  }
  const Problem problem = problem_with([](Json&, StateFiles&) {}, 20);
  EXPECT_NE(problem.what.find("the vocabulary has 20"), std::string::npos) << problem.what;
}

RC_GTEST_PROP(RunState, AnyChangedDocumentIsReadOrRefusedAndNeverCrashes,
              (uint32_t at, uint8_t byte, uint8_t kind)) {
  StateFiles state = to_state_files(busy_run(), {});
  std::string& text = state.document;
  const size_t offset = at % text.size();
  if (kind % 3 == 0) text[offset] = static_cast<char>(byte);
  if (kind % 3 == 1) text.erase(offset, 1 + byte % 16);
  if (kind % 3 == 2) text.insert(offset, text.substr(byte % text.size(), 1 + byte % 8));
  try {
    to_run_state(state, "state.json", kVocabSize);
  } catch (const UserError& error) {
    RC_ASSERT(error.kind() == ErrorKind::kData);
    RC_ASSERT(!error.problems()[0].fix.empty());
  }
}

TEST(LoadedCheckpoint, HoldsTheFilesOfACheckpointAgainstEachOther) {
  const test::TempDir dir;
  const std::string path = dir.file("checkpoint-11");
  std::filesystem::create_directories(path);
  write_state_files(path, to_state_files(busy_run(), {{"a.exp_avg", at::ones({2})}}));
  // no trainer_state.json
  EXPECT_EQ(test::catch_user_error([&] { read_checkpoint(path, kVocabSize); }).kind(),
            ErrorKind::kData);
  TrainerState trainer;
  trainer.global_step = 11;
  trainer.best_metric = 0.1;
  write_file_atomic(path + "/trainer_state.json", trainer.to_json());
  const LoadedCheckpoint loaded = read_checkpoint(path, kVocabSize);
  expect_same(loaded.run, busy_run());
  EXPECT_EQ(loaded.trainer.global_step, 11);
  EXPECT_EQ(loaded.trainer.best_metric, 0.1);
  ASSERT_EQ(loaded.optimizer.size(), 1u);
  trainer.global_step = 12;
  write_file_atomic(path + "/trainer_state.json", trainer.to_json());
  const Problem problem =
      test::catch_user_error([&] { read_checkpoint(path, kVocabSize); }).problems()[0];
  EXPECT_EQ(problem.what, "12, but the training state is from step 11");
}

}  // namespace rematch
