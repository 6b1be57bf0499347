// The program on several ranks, each a process with one thread: what one process does, to the bit,
// and what happens when one fails.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "base/flow/segment.h"
#include "base/json.h"
#include "base/wire.h"
#include "e2e/program.h"
#include "learn/data/windows.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;
using testing::ContainsRegex;
using testing::HasSubstr;

const std::string kLora =
    "tuner: {train_type: lora, lora_rank: 3, lora_alpha: 6, lora_dropout: 0.1, target_modules: "
    "[all-linear]}\n"
    "training: {max_steps: 5, eval_strategy: steps, eval_steps: 3, per_device_eval_batch_size: 1, "
    "save_strategy: steps, save_steps: 3}\n"
    "custom: {extra: {rollout_matching: {rollout_buffer: {enabled: true, m_steps: 2}}}}\n";

/// Start of a run: `num_ranks` times `accumulation` micro-batches a window.
struct World {
  int num_ranks = 1;
  int accumulation = 4;
  int zero_stage = 0;
  bool exact_ranks = true;
};

/// `rematch` by torchrun once for each rank.
/// @param options  of torchrun
std::string torchrun(int num_ranks, const std::string& options = "") {
  return fmt::format("{} --no-python --nproc-per-node {} {} {}",
                     test::source_path(".venv/bin/torchrun"), num_ranks, options,
                     test::binary_path("bin/rematch"));
}

std::string command_of(const test::Program& program, const World& world, const std::string& config,
                       const std::string& options = "") {
  const std::string start =
      world.num_ranks > 1 ? torchrun(world.num_ranks, options) : test::binary_path("bin/rematch");
  return fmt::format(
      "cd {} && export OMP_NUM_THREADS=1 && exec {} train {} --set "
      "training.gradient_accumulation_steps={} --set training.zero_stage={} --set "
      "training.exact_ranks={}",
      program.dir().path(), start, config, world.accumulation, world.zero_stage, world.exact_ranks);
}

test::ProcessResult run(const test::Program& program, const World& world, const std::string& config,
                        const std::string& options = "") {
  return test::run_command(command_of(program, world, config, options));
}

std::string weights_of(const test::Program& program, int step) {
  const std::string checkpoint = fmt::format("{}/checkpoint-{}", program.run_dir(), step);
  const bool is_adapter = fs::exists(checkpoint + "/adapter_model.safetensors");
  return read_file(checkpoint + (is_adapter ? "/adapter_model.safetensors" : "/model.safetensors"));
}

struct Outcome {
  std::string weights, log;
};

Outcome train(const World& world, const std::string& lines, int last_step) {
  test::Program program;
  const test::ProcessResult result = run(program, world, program.config(lines));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return {weights_of(program, last_step), program.log_without_times()};
}

void expect_the_same(const Outcome& found, const Outcome& expected) {
  EXPECT_TRUE(found.weights == expected.weights) << "other weights";
  EXPECT_EQ(found.log, expected.log);
}

}  // namespace

TEST(Ranks, OneTimesFourEqualsTwoTimesTwoEqualsFourTimesOne) {
  const Outcome one = train({1, 4}, kLora, 5);
  expect_the_same(train({2, 2, 0}, kLora, 5), one);
  expect_the_same(train({2, 2, 1}, kLora, 5), one);
  expect_the_same(train({4, 1, 2}, kLora, 5), one);
}

TEST(Ranks, GiveTheSameBitsWithTheNativeEngineAndAllWeights) {
  const std::string lines =
      "training: {max_steps: 3}\ncustom: {extra: {rollout_matching: {rollout_backend: native, "
      "temperature: 0.7}}}\n";
  expect_the_same(train({2, 1, 1}, lines, 3), train({1, 2}, lines, 3));
}

TEST(Ranks, StageOneDealsThePackedRowsOfTheStream) {
  const std::string lines =
      "custom: {trainer_variant: sft}\ntraining: {packing: true, packing_drop_last: false, "
      "max_steps: 3, eval_strategy: steps, eval_steps: "
      "3}\n";
  expect_the_same(train({2, 1}, lines, 3), train({1, 2}, lines, 3));
}

TEST(Ranks, LeaveOutBadSamplesAsOneProcessDoes) {
  const auto skipping = [](const World& world, const std::string& variant) {
    test::Program program;
    fs::copy(test::Program::golden("images"), program.dir().file("images"));
    fs::copy(test::Program::golden("train.jsonl"), program.dir().file("train.jsonl"));
    for (const char* image : {"0", "2", "3"})
      program.dir().write(fmt::format("images/{}.png", image), "broken");
    const test::ProcessResult result =
        run(program, world,
            program.config("data: {on_bad_sample: skip}\ntraining: {max_steps: 4, "
                           "per_device_train_batch_size: 1}\n"
                           "custom: {train_jsonl: train.jsonl, trainer_variant: " +
                           variant + "}\n"));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Outcome{weights_of(program, 4), program.log_without_times()};
  };
  for (const char* variant : {"sft", "rollout_matching_sft"}) {
    const Outcome one = skipping({1, 4}, variant);
    EXPECT_THAT(one.log, HasSubstr("data/skipped_samples"));
    expect_the_same(skipping({2, 2}, variant), one);
  }
}

TEST(Ranks, AWindowGoesOnWhileAnyRankKeepsARowOfIt) {
  test::Program program;
  fs::copy(test::Program::golden("images"), program.dir().file("images"));
  fs::copy(test::Program::golden("train.jsonl"), program.dir().file("train.jsonl"));
  const std::string config = program.config(
      "training: {max_steps: 4, save_strategy: steps, save_steps: 3, per_device_train_batch_size: "
      "1, lr_scheduler_type: constant}\n"
      "custom: {train_jsonl: train.jsonl, extra: {rollout_matching: {max_new_tokens: 4, "
      "rollout_buffer: {enabled: true, m_steps: 2}}}}\n");
  ASSERT_EQ(run(program, {2, 1}, config).exit_code, 0);
  // Each rank has one row of the window that is open after step 3.
  const auto break_image_of = [&](int rank) {
    const std::string path = fmt::format("{}/checkpoint-3/training_state/state-0000{}-of-00002.bin",
                                         program.run_dir(), rank);
    const std::string bytes = read_file(path);
    WireReader state(bytes);
    int64_t num_steps = 0;
    WindowCursor cursor;
    std::optional<OpenWindow> open;
    state(num_steps, cursor, open);
    const Segment& segment = *open->window.rows.at(0).segments.at(0);
    program.dir().write(segment.images.at(0).path, "broken");
    return "skipped " + segment.where;
  };
  const std::string resume =
      config + " --set training.resume_from_checkpoint=latest --set data.on_bad_sample=skip";
  const auto resumed = [&](const World& world, const std::string& more = "") {
    for (const int later : {4, 6, 9, 12, 15, 16})
      fs::remove_all(fmt::format("{}/checkpoint-{}", program.run_dir(), later));
    return run(program, world, resume + more);
  };
  const std::string skipped = break_image_of(1);
  const test::ProcessResult without_one = resumed({2, 1});
  EXPECT_EQ(without_one.exit_code, 0) << without_one.err;
  EXPECT_THAT(read_file(program.run_dir() + "/logs/rank-1.log"), HasSubstr(skipped));
  const test::ProcessResult into_next_epoch = resumed({1, 2}, " --set training.max_steps=16");
  EXPECT_EQ(into_next_epoch.exit_code, 0) << into_next_epoch.err;
  const size_t first = into_next_epoch.err.find(skipped);
  ASSERT_NE(first, std::string::npos) << into_next_epoch.err;
  EXPECT_EQ(into_next_epoch.err.find(skipped, first + 1), std::string::npos) << "warned of twice";
  break_image_of(0);
  const test::ProcessResult without_any = resumed({2, 1});
  EXPECT_THAT(without_any.err, ContainsRegex("exitcode +: 3 "));
  EXPECT_THAT(without_any.err, HasSubstr("no sample of a window can be used"));
}

TEST(Ranks, EachRankHasItsOwnPackedWindowsAndCarryBuffer) {
  for (const char* scope : {"micro", "window"}) {
    test::Program program;
    const std::string config = program.config(fmt::format(
        "training: {{max_steps: 4, packing: true, save_strategy: steps, save_steps: 2}}\n"
        "custom: {{extra: {{rollout_matching: {{post_rollout_pack_scope: {}}}}}}}\n",
        scope));
    const World world{.num_ranks = 2, .accumulation = 2, .exact_ranks = false};
    const test::ProcessResult whole = run(program, world, config);
    ASSERT_EQ(whole.exit_code, 0) << scope << whole.err;
    const std::string weights = weights_of(program, 4);
    fs::remove_all(program.run_dir() + "/checkpoint-4");
    const test::ProcessResult resumed =
        run(program, world, config + " --set training.resume_from_checkpoint=latest");
    ASSERT_EQ(resumed.exit_code, 0) << scope << resumed.err;
    EXPECT_TRUE(weights_of(program, 4) == weights) << scope;
  }
}

TEST(Ranks, AnotherNumberOfRanksContinuesWithTheSameWindows) {
  const Outcome undisturbed = train({1, 4}, kLora, 5);
  test::Program program;
  const std::string config = program.config(kLora);
  ASSERT_EQ(run(program, {2, 2, 1}, config).exit_code, 0);
  EXPECT_TRUE(fs::exists(program.run_dir() +
                         "/checkpoint-3/training_state/optimizer-00001-of-00002.safetensors"));
  const std::string resume = " --set training.resume_from_checkpoint=latest";
  for (const World world : {World{1, 4}, World{4, 1}}) {
    // step 3 is in the middle of a window, which is distributed again
    fs::remove_all(program.run_dir() + "/checkpoint-5");
    const test::ProcessResult resumed = run(program, world, config + resume);
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    expect_the_same({weights_of(program, 5), program.log_without_times()}, undisturbed);
  }
  const test::ProcessResult other = run(program, {1, 2}, config + resume);
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_THAT(other.err, HasSubstr("gradient_accumulation_steps"));
}

TEST(Ranks, AnEvaluationWritesTheFilesOfOneProcess) {
  const auto evaluated = [](const std::string& start) {
    test::Program program;
    const std::string config = program.config(
        "training: {per_device_eval_batch_size: 1}\n"
        "custom: {trainer_variant: sft, val_sample_limit: 5, extra: {rollout_matching: "
        "{rollout_generate_batch_size: 1}}}\n");
    const test::ProcessResult result =
        test::run_command(fmt::format("cd {} && export OMP_NUM_THREADS=1 && exec {} eval {}",
                                      program.dir().path(), start, config));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(program.run_dir() + "/eval")) {
      files[entry.path().filename().string()] = read_file(entry.path().string());
    }
    const std::string path = program.run_dir() + "/eval_results.json";
    Json scores = parse_json(read_file(path), path);
    for (const char* timed : {"eval_runtime", "eval_samples_per_second"})
      EXPECT_EQ(scores.erase(timed), 1u);
    files.erase("tiny_tied.json");  // the same as eval_results.json
    files["scores"] = scores.dump(1);
    return files;
  };
  const auto one = evaluated(test::binary_path("bin/rematch"));
  EXPECT_EQ(one.size(), 4u);
  EXPECT_THAT(one.at("scores"), HasSubstr("eval_loss"));
  EXPECT_THAT(one.at("scores"), HasSubstr("iou50"));
  EXPECT_EQ(evaluated(torchrun(3)), one);
}

TEST(Ranks, ARankWithOtherSettingsIsRefusedByName) {
  test::Program program;
  const std::string config = program.config();
  const std::string start = fmt::format(
      "cd {} && export OMP_NUM_THREADS=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 "
      "MASTER_PORT=$((20000 + $$ % 10000)); "
      "RANK=1 LOCAL_RANK=1 {} train {} --set training.seed=43 2> other.err & RANK=0 {} train {}; "
      "code=$?; wait; exit $code",
      program.dir().path(), test::binary_path("bin/rematch"), config,
      test::binary_path("bin/rematch"), config);
  const test::ProcessResult result = test::run_command(start);
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_THAT(result.err, HasSubstr("rank 1 was started with a different training.seed"));
  EXPECT_THAT(result.err, HasSubstr("there: 43"));
}

// Two directories stand for two hosts with their own copies.
TEST(Ranks, ARankThatReadsAnotherFileIsRefusedByName) {
  test::Program program;
  const auto file = [&](const std::string& name) { return program.dir().file(name); };
  fs::copy(test::Program::golden("images"), file("images"));
  const std::string records = read_file(test::Program::golden("val.jsonl"));
  const size_t half = records.find('\n', records.size() / 2) + 1;
  program.dir().write("val.jsonl", records);
  program.dir().write("half.jsonl", records.substr(0, half));
  program.dir().write("turned.jsonl", records.substr(half) + records.substr(0, half));
  program.dir().write("names.json", R"({"box": ["carton"]})");
  program.dir().write("others.json", R"({"box": ["crate"]})");
  fs::copy(test::Program::model(), file("model"));
  // A copy of the model in which one file is another one.
  const auto model_with = [&](const std::string& copy, const std::string& name,
                              const std::function<void(std::string&)>& change) {
    fs::copy(test::Program::model(), file(copy));
    std::string text = read_file(file("model/" + name));
    change(text);
    program.dir().write(copy + "/" + name, text);
  };
  const auto replaced = [](const std::string& from, const std::string& to) {
    return [=](std::string& text) { text.replace(text.find(from), from.size(), to); };
  };
  model_with("weights", "model.safetensors", [](std::string& bytes) { bytes.back() ^= 1; });
  model_with("processor", "preprocessor_config.json", replaced("0.5", "0.4"));
  model_with("template", "chat_template.jinja", [](std::string& text) { text += "x"; });
  model_with("generation", "generation_config.json", replaced("{", "{\"top_k\": 7,"));
  model_with("tokenizer", "tokenizer.json", replaced("1.0", "1.1"));
  const std::string config = program.config(
      "model: {model: model}\ntraining: {eval_strategy: steps, eval_steps: 2}\n"
      "custom: {val_jsonl: val.jsonl, extra: {rollout_matching: {label_match: names.json}}}\n");
  const std::string label_match = "custom.extra.rollout_matching.label_match";
  const std::vector<std::array<std::string, 3>> cases = {
      {"train", "model.model=weights", "model.safetensors: "},
      {"eval", "model.model=weights", "model.safetensors: "},
      {"train", "model.model=processor", "preprocessor_config.json: image_mean"},
      {"train", "model.model=template", "chat_template.jinja"},
      {"train", "model.model=generation", "generation_config.json: top_k"},
      {"eval", "model.model=tokenizer", "tokenizer.json"},
      {"eval", "custom.val_jsonl=half.jsonl", "custom.val_jsonl: records"},
      {"train", "custom.val_jsonl=half.jsonl", "custom.val_jsonl: records"},
      {"eval", "custom.val_jsonl=turned.jsonl", "custom.val_jsonl: records"},
      {"train", label_match + "=others.json", label_match}};
  for (const auto& [command, setting, name] : cases) {
    const test::ProcessResult result = test::run_command(fmt::format(
        "cd {0} && export OMP_NUM_THREADS=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 "
        "MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 10000)); "
        "RANK=1 LOCAL_RANK=1 {1} {2} {3} --set {4} 2> other.err & RANK=0 {1} {2} {3}; "
        "code=$?; wait; exit $code",
        program.dir().path(), test::binary_path("bin/rematch"), command, config, setting));
    EXPECT_EQ(result.exit_code, 4) << command << setting << result.err;
    EXPECT_THAT(result.err, HasSubstr("rank 1 was started with a different " + name))
        << command << setting;
  }
}

TEST(Ranks, AnInterruptSavesTheStateOfAllRanks) {
  test::Program program;
  const std::string config =
      program.config("training: {max_steps: 100000, save_strategy: \"no\"}\n");
  const std::string log = program.run_dir() + "/logging.jsonl";
  const test::ProcessResult result = test::run_command(
      "(" + command_of(program, {2, 1}, config) + ") & pid=$!; for i in $(seq 6000); do [ -s " +
      log + " ] && break; sleep 0.1; done; kill -INT $pid; wait $pid");
  EXPECT_THAT(result.err, HasSubstr("got signal: 2"));
  bool has_checkpoint = false;
  for (const auto& entry : fs::directory_iterator(program.run_dir())) {
    has_checkpoint =
        has_checkpoint || fs::exists(entry.path() / "training_state/state-00001-of-00002.bin");
  }
  EXPECT_TRUE(has_checkpoint) << result.err;
}

TEST(Ranks, AKilledRankIsNamedAndARestartGivesTheSameResult) {
  const Outcome undisturbed = train({1, 4}, kLora, 5);
  test::Program program;
  const std::string config = program.config(kLora);
  // Rank 1 is killed once the first checkpoint is there.
  const std::string resuming = config + " --set training.resume_from_checkpoint=latest";
  const test::ProcessResult result =
      test::run_command("(" + command_of(program, {2, 2}, resuming, "--max-restarts 1") +
                        ") & pid=$!; for i in $(seq 6000); do [ -d " + program.run_dir() +
                        "/checkpoint-3 ] && break; sleep 0.02; done; kill -KILL $(pgrep -P $pid | "
                        "tail -1); wait $pid");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("failed (exitcode: -9) local_rank: 1"));
  EXPECT_THAT(result.err, HasSubstr("what:  rank 1 on "));
  expect_the_same({weights_of(program, 5), program.log_without_times()}, undisturbed);
}

TEST(Ranks, NcclIsRefusedWhereItCannotRun) {
  test::Program program;
  const test::ProcessResult result =
      run(program, {2, 1}, program.config("training: {ddp_backend: nccl}\n") + " --device cpu");
  EXPECT_THAT(result.err, ContainsRegex("exitcode +: 2 "));
  const std::string refusal = "`training.ddp_backend: nccl` needs a GPU for each rank";
  EXPECT_THAT(result.err, HasSubstr(refusal));
  const std::string check =
      "check --device cpu " + program.config("training: {ddp_backend: nccl}\n");
  const test::ProcessResult checked = program.run(check + " --ranks 2");
  EXPECT_EQ(checked.exit_code, 2) << checked.err;
  EXPECT_THAT(checked.err, HasSubstr(refusal));
  EXPECT_EQ(program.run(check).exit_code, 0) << "one rank needs no messages";
}

}  // namespace rematch
