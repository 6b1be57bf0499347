// A run that is killed and resumed ends where an undisturbed one ends: same weights, same log, to
// the bit.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "base/random.h"
#include "e2e/program.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

bool is_timing(const std::string& key) {
  return key.rfind("time/", 0) == 0 || key.find("_per_s") != std::string::npos ||
         key == "eval_runtime" || key == "eval_samples_per_second";
}

/// logging.jsonl without what a clock decides, but for the zeros that mark a reused window.
std::string log_of(const test::Program& program) {
  std::istringstream lines(read_file(program.run_dir() + "/logging.jsonl"));
  std::string text, line;
  while (std::getline(lines, line)) {
    Json kept = Json::object();
    const Json logged = parse_json(line, "logging.jsonl");
    for (const auto& member : logged.items()) {
      if (!is_timing(member.key()))
        kept[member.key()] = member.value();
      else if (member.value() == 0)
        kept[member.key()] = 0;
    }
    text += kept.dump() + "\n";
  }
  return text;
}

std::string weights_of(const test::Program& program, int step) {
  return read_file(fmt::format("{}/checkpoint-{}/model.safetensors", program.run_dir(), step));
}

/// Runs the program and kills it without warning after some time; true when it was killed.
bool killed_after(const test::Program& program, const std::string& config, double seconds) {
  const test::ProcessResult result = test::run_command(
      fmt::format("cd {} && timeout -s KILL {:.3f} {} train {}", program.dir().path(), seconds,
                  test::binary_path("bin/rematch"), config));
  EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 137) << result.err;
  return result.exit_code == 137;
}

struct Case {
  const char* name;
  std::string lines;
};

const int kSteps = 10;
const std::string kRhythm =
    "training: {max_steps: 10, save_strategy: steps, save_steps: 1, save_total_limit: 2, "
    "eval_strategy: steps, eval_steps: 4, "
    "resume_from_checkpoint: latest, ";

std::vector<Case> cases() {
  const std::string stage_2 = "custom: {extra: {rollout_matching: {max_new_tokens: 40, ";
  return {
      {"carry buffer, reused windows, no workers",
       kRhythm +
           "packing: true, per_device_train_batch_size: 3, gradient_accumulation_steps: 2}\ndata: "
           "{dataloader_num_workers: 0}\n" +
           stage_2 + "rollout_buffer: {enabled: true, m_steps: 3}}}}\n"},
      {"whole windows, sampling, four workers",
       kRhythm +
           "logging_steps: 3, packing: true, per_device_train_batch_size: 2, "
           "gradient_accumulation_steps: 3}\ndata: {dataloader_num_workers: 4}\n" +
           stage_2 +
           "temperature: 0.9, packing_selector: optimal, post_rollout_pack_scope: window, "
           "rollout_buffer: {enabled: true, m_steps: "
           "2}}}}\n"},
      {"a part of the windows rolls out, rewritten targets, carry buffer, noise, an evaluation of "
       "the start",
       kRhythm +
           "eval_on_start: true, packing: true, per_device_train_batch_size: 3, "
           "gradient_accumulation_steps: 2}\n" +
           "custom: {coord_input_noise: 8, extra: {rollout_matching: {max_new_tokens: 40, "
           "temperature: 0.7, target_policy: rewrite, "
           "rollout_share: 0.3, rollout_buffer: {enabled: true, m_steps: 2}}}}\n"},
      {"stage 1, packed stream", kRhythm + "packing: true, packing_drop_last: false, "
                                           "lr_scheduler_type: cosine}\ncustom: {trainer_variant: "
                                           "sft, object_ordering: random}\n"},
  };
}

}  // namespace

TEST(Resume, TwentyKillsAtRandomMomentsChangeNothing) {
  uint64_t draw = 0;
  for (const Case& one : cases()) {
    test::Program undisturbed;
    const auto start = std::chrono::steady_clock::now();
    const test::ProcessResult result = undisturbed.run("train " + undisturbed.config(one.lines));
    ASSERT_EQ(result.exit_code, 0) << one.name << "\n" << result.err;
    const double whole_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

    test::Program program;
    const std::string config = program.config(one.lines);
    const auto expect_the_same = [&] {
      EXPECT_TRUE(weights_of(program, kSteps) == weights_of(undisturbed, kSteps)) << one.name;
      EXPECT_EQ(log_of(program), log_of(undisturbed)) << one.name;
      for (const auto& entry : fs::directory_iterator(program.run_dir())) {
        EXPECT_NE(entry.path().filename().string().rfind(".tmp", 0), 0u)
            << "left over: " << entry.path();
      }
    };
    // From before the first log line to the last rotation. A run that reached its end, after none
    // or several kills, is checked and restarted.
    int num_kills = 0;
    for (int attempt = 0; attempt < 60 && num_kills < 7; ++attempt) {
      if (killed_after(program, config,
                       whole_s * (0.2 + 0.7 * random_uniform(random_key({2026}), draw++)))) {
        ++num_kills;
        continue;
      }
      expect_the_same();
      fs::remove_all(program.run_dir());
    }
    EXPECT_EQ(num_kills, 7) << one.name;
    const test::ProcessResult last = program.run("train " + config);
    ASSERT_EQ(last.exit_code, 0) << one.name << "\n" << last.err;
    expect_the_same();
  }
}

TEST(Resume, InTheMiddleOfALogIntervalGivesTheSameLines) {
  const std::string lines =
      "training: {max_steps: 7, save_strategy: steps, save_steps: 1, logging_steps: 3}\n"
      "custom: {extra: {rollout_matching: {rollout_buffer: {enabled: true, m_steps: 2}}}}\n";
  test::Program whole, parts;
  ASSERT_EQ(whole.run("train " + whole.config(lines)).exit_code, 0);
  const std::string config = parts.config(lines);
  ASSERT_EQ(parts.run("train " + config).exit_code, 0);
  for (int step = 6; step <= 7; ++step)
    fs::remove_all(fmt::format("{}/checkpoint-{}", parts.run_dir(), step));
  // Continues after step 5: the line of step 6 also holds the steps 4 and 5.
  const test::ProcessResult resumed = parts.run("train " + config + " --resume");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(log_of(parts), log_of(whole));
  EXPECT_THAT(log_of(whole), HasSubstr("\"step\":6"));
}

TEST(Resume, AnInterruptedRunGoesOnToTheSameEnd) {
  const std::string lines = cases()[0].lines;
  test::Program undisturbed;
  ASSERT_EQ(undisturbed.run("train " + undisturbed.config(lines)).exit_code, 0);
  test::Program program;
  const std::string config = program.config(lines);
  const test::ProcessResult interrupted =
      test::run_command(fmt::format("cd {} && timeout -s INT 0.9 {} train {}", program.dir().path(),
                                    test::binary_path("bin/rematch"), config));
  EXPECT_TRUE(interrupted.exit_code == 124 || interrupted.exit_code == 0)
      << interrupted.exit_code << interrupted.err;
  const test::ProcessResult result = program.run("train " + config);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(weights_of(program, kSteps) == weights_of(undisturbed, kSteps));
  EXPECT_EQ(log_of(program), log_of(undisturbed));
}

TEST(Resume, StartsAnewWhenThereIsNothingToResumeAndSaysSo) {
  test::Program program;
  const test::ProcessResult result =
      program.run("train " + program.config("training: {resume_from_checkpoint: latest}\n"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("no checkpoint to resume from: starting a new run"));
  const test::ProcessResult again =
      program.run("train " + program.config("training: {resume_from_checkpoint: latest}\n"));
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("resuming after step 2 of 2"));
  EXPECT_THAT(again.err, HasSubstr("done: 0 steps"));
}

TEST(Resume, RefusesWhatIsNotTheSameRunAndSaysWhatDiffers) {
  test::Program program;
  ASSERT_EQ(program.run("train " + program.config()).exit_code, 0);
  const std::string resume = "training: {resume_from_checkpoint: latest, max_steps: 4";
  const auto refused = [&](const std::string& lines, const std::string& part) {
    const test::ProcessResult result = program.run("train " + program.config(lines));
    EXPECT_EQ(result.exit_code, 3) << lines << result.err;
    EXPECT_THAT(result.err, HasSubstr(part)) << lines;
  };
  refused(resume + ", per_device_train_batch_size: 4}\n", "per_device_train_batch_size");
  refused(resume + ", seed: 7}\n", "seed");
  refused(resume + "}\ncustom: {train_sample_limit: 6}\n", "samples");
  std::string changed = read_file(test::Program::golden("train.jsonl"));
  changed.insert(changed.find("\"desc\": \"") + 9, "very ");
  const std::string data = program.dir().write("changed.jsonl", changed);
  fs::create_directory_symlink(test::Program::golden("images"), program.dir().file("images"));
  refused(resume + "}\ncustom: {train_jsonl: " + data + "}\n", "train_jsonl");
}

TEST(Resume, ADamagedCheckpointIsPassedOverForAnOlderOneAndNamedWhenAskedFor) {
  test::Program program;
  const std::string lines = "training: {max_steps: 3, save_strategy: steps, save_steps: 1}\n";
  ASSERT_EQ(program.run("train " + program.config(lines)).exit_code, 0);
  const std::string newest = program.run_dir() + "/checkpoint-3";
  for (const char* file :
       {"training_state/optimizer.safetensors", "training_state/state.bin", "model.safetensors"}) {
    const std::string path = newest + "/" + file;
    const std::string whole = read_file(path);
    fs::resize_file(path, whole.size() / 2);
    const test::ProcessResult asked = program.run(
        "train " +
        program.config("training: {max_steps: 4, resume_from_checkpoint: " + newest + "}\n"));
    EXPECT_EQ(asked.exit_code, 3) << file << asked.err;
    EXPECT_THAT(asked.err, HasSubstr(fs::path(file).filename().string())) << file;
    const test::ProcessResult latest = program.run(
        "train " + program.config("training: {max_steps: 2, save_last_epoch: false, save_strategy: "
                                  "\"no\", resume_from_checkpoint: latest}\n"));
    EXPECT_EQ(latest.exit_code, 0) << file << latest.err;
    EXPECT_THAT(latest.err, HasSubstr("resuming from out/run/checkpoint-2")) << file;
    write_file_atomic(path, whole);
  }
}

TEST(Resume, ACheckpointOfTheModelAloneIsRefusedWithTheReason) {
  test::Program program;
  ASSERT_EQ(program.run("train " + program.config("training: {save_only_model: true}\n")).exit_code,
            0);
  EXPECT_FALSE(fs::exists(program.run_dir() + "/checkpoint-2/training_state"));
  const test::ProcessResult result = program.run(
      "train " + program.config("training: {max_steps: 4, resume_from_checkpoint: latest}\n"));
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.err, HasSubstr("save_only_model"));
  const test::ProcessResult missing = program.run(
      "train " + program.config("training: {resume_from_checkpoint: out/run/checkpoint-7}\n"));
  EXPECT_EQ(missing.exit_code, 4) << missing.err;
  EXPECT_THAT(missing.err, HasSubstr("checkpoint-2")) << "what there is";
}

TEST(Resume, AnotherMetricOrSetStartsTheBestAndTheHealthAnew) {
  test::Program program;
  const std::string config = program.config(
      "training: {max_steps: 2, eval_strategy: steps, eval_steps: 1, save_strategy: steps, "
      "save_steps: 1, save_total_limit: 1, metric_for_best_model: eval_rollout_f1, "
      "learning_rate: 0, resume_from_checkpoint: latest}\n");
  ASSERT_EQ(program.run("train " + config).exit_code, 0);
  const auto state = [&](int step) {
    return read_json_file(
        fmt::format("{}/checkpoint-{}/trainer_state.json", program.run_dir(), step));
  };
  EXPECT_EQ(state(2)["best_global_step"], 1);
  EXPECT_EQ(state(2)["stateful_callbacks"]["rematch"]["best_metric_name"], "eval_rollout_f1");
  const auto goes_on = [&](int steps, const std::string& options) {
    const test::ProcessResult result =
        program.run(fmt::format("train {} --set training.max_steps={} {}", config, steps, options));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.err + result.out;
  };
  EXPECT_EQ(goes_on(3, "").find("the best score is reset"), std::string::npos);
  EXPECT_EQ(state(3)["best_global_step"], 1);

  const std::string duplicates =
      "--set training.metric_for_best_model=eval_rollout_duplicates --set "
      "training.greater_is_better=false ";
  EXPECT_THAT(goes_on(4, duplicates),
              HasSubstr("resumed with another metric_for_best_model: eval_rollout_f1 (greater is "
                        "better) → eval_rollout_duplicates (less is better)"));
  EXPECT_EQ(state(4)["best_global_step"], 4);
  EXPECT_TRUE(fs::exists(program.run_dir() + "/checkpoint-1")) << "the best by F1";

  const std::string two = goes_on(6, duplicates + "--set custom.val_sample_limit=2");
  EXPECT_THAT(two, HasSubstr("resumed with another validation set: 4 records "));
  EXPECT_THAT(two, HasSubstr("the health line compares with the first evaluation over that set"));
  EXPECT_THAT(two, testing::ContainsRegex("health: nothing .* after step 5"));
  EXPECT_EQ(two.find("than at the start"), std::string::npos) << two;
  EXPECT_EQ(two.find("than after step 1"), std::string::npos) << two;
  for (const int step : {1, 4}) {
    EXPECT_TRUE(fs::exists(fmt::format("{}/checkpoint-{}", program.run_dir(), step)))
        << step << " was the best";
  }
}

}  // namespace rematch
