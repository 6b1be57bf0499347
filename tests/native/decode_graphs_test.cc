#include "engine/rollout/native/aten/decode_graphs.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "engine/rollout/native/aten/runner.h"
#include "engine/rollout/native/native_engine.h"
#include "rollout/generate_golden.h"
#include "support/paths.h"

namespace rematch {
namespace {

using test::responses;

// Stand-in for a device's graphs: repeats the work on the tensors it was recorded with.
struct Recorder {
  int num_captures = 0, num_replays = 0;
  std::function<void()> in_capture = [] {};
  std::function<void(const std::function<void()>& work)> in_replay = [](const auto& work) {
    work();
  };

  StepGraphMaker maker() {
    return [this] { return std::make_unique<Graph>(*this); };
  }

 private:
  class Graph : public StepGraph {
   public:
    explicit Graph(Recorder& recorder) : recorder_(recorder) {}
    void capture(const std::function<void()>& work) override {
      recorder_.in_capture();
      work();  // as devices do before they record
      work_ = work;
      ++recorder_.num_captures;
    }
    void replay() override {
      ++recorder_.num_replays;
      recorder_.in_replay(work_);
    }

   private:
    Recorder& recorder_;
    std::function<void()> work_;
  };
};

const test::GenerateGolden& greedy_golden() {
  static const test::GenerateGolden loaded =
      test::load_generate_golden(test::source_path("tests/golden/rollout_generate.json"));
  return loaded;
}

NativeEngine engine_with(Recorder& recorder, const NativeSettings& native = {},
                         const std::shared_ptr<const Model>& model = test::rollout_model().model) {
  return NativeEngine({.model = model,
                       .tokenizer = test::rollout_model().tokenizer,
                       .pixels = test::synthetic_pixels,
                       .runner = make_aten_runner(model, recorder.maker()),
                       .encoder = make_aten_encoder(model)},
                      {{.max_new_tokens = greedy_golden().new_tokens, .native = native}});
}

}  // namespace

TEST(DecodeGraphs, AnswersWithReplaysAreThoseWithout) {
  // All answers side by side; fewer, so that steps are filled up; pieces of prompts next to
  // answers.
  for (const NativeSettings& native : {NativeSettings{}, NativeSettings{.max_num_seqs = 3},
                                       NativeSettings{.max_num_seqs = 5, .max_step_rows = 7}}) {
    Recorder recorder;
    NativeEngine engine = engine_with(recorder, native);
    EXPECT_EQ(responses(engine.generate(greedy_golden().prompts, {})), greedy_golden().plain)
        << native.max_num_seqs;
    EXPECT_GT(recorder.num_captures, 0);
    EXPECT_GT(recorder.num_replays, 2 * recorder.num_captures) << "a recording is worth it";
  }
}

TEST(DecodeGraphs, AreRecordedAnewWhenTheCacheHasMoved) {
  Recorder recorder;
  NativeEngine engine = engine_with(recorder);
  engine.generate(greedy_golden().prompts, {});
  const int first = recorder.num_captures, num_replays = recorder.num_replays;
  engine.release();
  EXPECT_EQ(responses(engine.generate(greedy_golden().prompts, {})), greedy_golden().plain);
  EXPECT_EQ(recorder.num_captures, 2 * first);
  EXPECT_GT(recorder.num_replays, 2 * num_replays) << "recorded when they occur first";
}

// Computing a step twice would move the states of the delta rule twice.
TEST(DecodeGraphs, ReplayStepsWithStates) {
  const std::shared_ptr<Model> model =
      Model::load(test::source_path("tests/golden/model/delta_tied"), {});
  const auto answers = [&](Recorder& recorder, const NativeSettings& native) {
    return responses(engine_with(recorder, native, model).generate(greedy_golden().prompts, {}));
  };
  Recorder refusing;
  refusing.in_capture = [] { TORCH_CHECK(false, "no graphs"); };
  const auto wanted = answers(refusing, {});
  for (const NativeSettings& native : {NativeSettings{}, NativeSettings{.max_num_seqs = 3},
                                       NativeSettings{.max_num_seqs = 5, .max_step_rows = 7}}) {
    Recorder recorder;
    EXPECT_EQ(answers(recorder, native), wanted) << native.max_num_seqs;
    EXPECT_GT(recorder.num_replays, 2 * recorder.num_captures);
  }
  Recorder wrong;
  wrong.in_replay = [](const auto&) {};
  EXPECT_EQ(answers(wrong, {}), wanted) << "a refused recording leaves the states as they were";
}

TEST(DecodeGraphs, GiveUpWhereADeviceRefusesToRecord) {
  Recorder recorder;
  recorder.in_capture = [] {
    TORCH_CHECK(false, "operation not permitted when stream is capturing");
  };
  NativeEngine engine = engine_with(recorder);
  testing::internal::CaptureStderr();
  EXPECT_EQ(responses(engine.generate(greedy_golden().prompts, {})), greedy_golden().plain);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("operation not permitted when stream is capturing"), std::string::npos)
      << said;
  EXPECT_EQ(said.find("kernel by kernel"), said.rfind("kernel by kernel")) << "said once";
  EXPECT_EQ(recorder.num_replays, 0);
}

TEST(DecodeGraphs, GiveUpWhenAReplayDiffersFromItsStep) {
  Recorder recorder;
  recorder.in_replay = [](const auto&) {};  // leaves the output as it was
  NativeEngine engine = engine_with(recorder);
  testing::internal::CaptureStderr();
  EXPECT_EQ(responses(engine.generate(greedy_golden().prompts, {})), greedy_golden().plain);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("a replay differs"), std::string::npos);
  EXPECT_EQ(recorder.num_replays, 1);
}

TEST(DecodeGraphs, TakeFewSizes) {
  using Size = std::pair<int64_t, int64_t>;
  EXPECT_EQ(DecodeGraphs::padded_size(1, 1, false), Size(1, 128));
  EXPECT_EQ(DecodeGraphs::padded_size(3, 128, false), Size(4, 128));
  EXPECT_EQ(DecodeGraphs::padded_size(8, 129, false), Size(8, 256));
  EXPECT_EQ(DecodeGraphs::padded_size(9, 1000, false), Size(16, 1024));
  EXPECT_EQ(DecodeGraphs::padded_size(64, 1, false), Size(64, 128));
  std::set<Size> sizes;  // as the answers of a window end
  for (int64_t rows = 1; rows <= 256; ++rows)
    sizes.insert(DecodeGraphs::padded_size(rows, 500, true));
  EXPECT_EQ(sizes.size(), 9u);
  // From 500 to 1500 tokens: two sizes in pages instead of nine.
  EXPECT_EQ(DecodeGraphs::padded_size(9, 500, true), Size(16, 1024));
  EXPECT_EQ(DecodeGraphs::padded_size(9, 1500, true), Size(16, 2048));
}

TEST(DecodeGraphs, DoNotExistOnTheCpu) { EXPECT_FALSE(device_graphs(c10::Device(c10::kCPU))); }

}  // namespace rematch
