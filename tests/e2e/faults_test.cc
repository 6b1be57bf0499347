// Events that are not the fault of a run: signals, dead terminals, full disks, damaged files, a
// second run. Nothing is lost and nothing is silent.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"
#include "model/checkpoint/hf_dir.h"
#include "model/checkpoint/safetensors.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

/// A run that takes so long that a script can meddle with it.
std::string long_run(const test::Program& program, const std::string& more = "") {
  return program.config("training: {max_steps: 400, save_strategy: \"no\", save_last_epoch: false" +
                        more + "}\ncustom: {extra: {rollout_matching: {max_new_tokens: 4}}}\n");
}

std::string weights_of(const test::Program& program, int step) {
  return read_file(fmt::format("{}/checkpoint-{}/model.safetensors", program.run_dir(), step));
}

/// A copy of the golden model with other members of preprocessor_config.json.
std::string model_with_processor(const test::Program& program, const std::string& name, int value) {
  fs::copy(test::Program::model(), program.dir().file("model"),
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  Json processor = read_json_file(program.dir().file("model/preprocessor_config.json"));
  processor[name] = value;
  program.dir().write("model/preprocessor_config.json", processor.dump());
  return program.config(
      "model: {model: model}\ncustom: {extra: {rollout_matching: {rollout_backend: native}}}\n");
}

/// Two starts in a world that does not hold still (tests/support/world_shim.c), the second from
/// what the first wrote, in another hour on another host: they give the weights and the log of one
/// plain run.
/// @param world  more of the environment
void expect_no_difference(const test::Program& program, const std::string& world) {
  test::Program plain;
  const std::string lines =
      "training: {save_strategy: steps, save_steps: 1, report_to: tensorboard, "
      "resume_from_checkpoint: latest}\n";
  for (const char* steps : {"1", "2"}) {
    const test::ProcessResult result = program.script(fmt::format(
        "{} LD_PRELOAD={} $R train {} --set training.max_steps={} "
        "--set training.lr_scheduler_type=constant",
        world, test::binary_path("tests/librematch_world_shim.so"), program.config(lines), steps));
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  ASSERT_EQ(
      plain.run("train " + plain.config("training: {lr_scheduler_type: constant}\n")).exit_code, 0);
  EXPECT_TRUE(weights_of(plain, 2) == weights_of(program, 2));
  EXPECT_THAT(plain.log_without_times(), HasSubstr("\"loss\""));
  EXPECT_EQ(plain.log_without_times(), program.log_without_times());
}

}  // namespace

TEST(Faults, AProcessorThatDoesNotFitTheTowerIsOneErrorAtLoad) {
  test::Program program;
  for (const auto& [name, value] : {std::pair{"patch_size", 8}, std::pair{"temporal_patch_size", 1},
                                    std::pair{"merge_size", 1}}) {
    const std::string config = model_with_processor(program, name, value);
    for (const char* command : {"train ", "eval ", "rollout "}) {
      const test::ProcessResult result = program.run(command + config);
      EXPECT_EQ(result.exit_code, 3) << command << name << result.err;
      EXPECT_THAT(result.err,
                  HasSubstr("the image processor and the vision tower of a model disagree"))
          << command << name;
      EXPECT_THAT(result.err, HasSubstr(fmt::format("{} is {}", name, value))) << command;
    }
  }
}

TEST(Faults, OutputOntoAFullDiskIsAnError) {
  test::Program program;
  const std::string config = program.config("custom: {val_sample_limit: 1}\n");
  for (const std::string& command : std::vector<std::string>{
           "$R check " + config, "$R --help", "$R eval " + config,
           "echo '{\"encoded_lens\": [1], \"packing_length\": 1}' | $R stage pack"}) {
    for (const char* target : {" > /dev/full", " >&-"}) {
      const test::ProcessResult result = program.script(command + target);
      EXPECT_EQ(result.exit_code, 4) << command << target << result.err;
      EXPECT_THAT(result.err, HasSubstr("cannot write the output")) << command << target;
    }
  }
  const test::ProcessResult rollout = program.run("rollout " + config + " --out /dev/full");
  EXPECT_EQ(rollout.exit_code, 4) << rollout.err;
  EXPECT_THAT(rollout.err, HasSubstr("No space left on device"));
}

TEST(Faults, AClosedPipeEndsOnlyWhatPrintsQuietly) {
  test::Program program;
  const std::string config = program.config("custom: {val_sample_limit: 1}\n");
  const auto into_closed_pipe = [&](const std::string& command) {
    return program.script("{ sleep 0.3; " + command + "; } | true; exit ${PIPESTATUS[0]}");
  };
  const test::ProcessResult check = into_closed_pipe("$R check " + config);
  EXPECT_EQ(check.exit_code, 141) << "as every program that a closed pipe ends";
  EXPECT_EQ(check.err, "");
  const test::ProcessResult eval = into_closed_pipe("$R eval " + config);
  EXPECT_EQ(eval.exit_code, 4) << eval.err;
  EXPECT_THAT(eval.err, HasSubstr("Broken pipe"));
  EXPECT_TRUE(fs::exists(program.run_dir() + "/eval_results.json"));
}

TEST(Faults, TrainingGoesOnWithoutItsTerminal) {
  test::Program program;
  const test::ProcessResult hung_up =
      program.script("$R train " + long_run(program) +
                     " --set training.max_steps=12 & pid=$!; steps 2; kill -HUP $pid; wait $pid");
  EXPECT_EQ(hung_up.exit_code, 0) << hung_up.err;
  const test::ProcessResult no_reader =
      program.script("$R train " + long_run(program) +
                     " --set training.max_steps=12 2>&1 | head -c 1; exit ${PIPESTATUS[0]}");
  EXPECT_EQ(no_reader.exit_code, 0) << no_reader.err;
}

TEST(Faults, AClosedTerminalLeavesNoPartOfAFile) {
  test::Program program;
  const std::string images = test::Program::golden("images");
  const test::ProcessResult hung_up = program.script(
      "$R predict " + test::Program::model() + " $(for i in $(seq 200); do echo " + images +
      "/0.png; done) --out found.jsonl & pid=$!; for i in $(seq 2000); do ls | "
      "grep -q tmp && break; sleep 0.05; done; kill -HUP $pid; kill -HUP $pid; "
      "wait $pid; code=$?; ls; exit $code");
  EXPECT_EQ(hung_up.exit_code, 130) << hung_up.err;
  EXPECT_EQ(hung_up.out.find("found"), std::string::npos) << hung_up.out;
}

TEST(Faults, SignalsOfSchedulersSave) {
  test::Program program;
  const std::string config = long_run(program);
  const std::string stop =
      "; [ $(ls -d out/run/checkpoint-* | wc -l) -ge 1 ] || exit 98; kill -TERM $pid; wait $pid; "
      "exit $?";
  const test::ProcessResult saved =
      program.script("$R train " + config +
                     " & pid=$!; steps 2; kill -USR1 $pid; n=$(cat out/run/logging.jsonl | wc -l); "
                     "steps $((n + 3))" +
                     stop);
  EXPECT_EQ(saved.exit_code, 130) << saved.err;
  EXPECT_THAT(saved.err, HasSubstr("saved out/run/checkpoint-"));
  const auto ended_by = [&](const std::string& signal, const std::string& more = "") {
    fs::remove_all(program.run_dir());
    return program.script("$R train " + config + more + " & pid=$!; steps 2; kill -" + signal +
                          " $pid; wait $pid");
  };
  for (const char* signal : {"USR2", "XCPU"}) {
    const test::ProcessResult ended = ended_by(signal);
    EXPECT_EQ(ended.exit_code, 130) << signal << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("saved out/run/checkpoint-")) << signal;
    EXPECT_THAT(ended.err, ContainsRegex("continue with: rematch train .*run.yaml --resume\n"));
  }
  const std::string said = ended_by("TERM", " --set training.save_only_model=true").err;
  EXPECT_THAT(said, HasSubstr("keeps nothing to resume from"));
  fs::remove_all(program.run_dir());
  const test::ProcessResult twice = program.script(
      "$R train " + config +
      " --set custom.extra.rollout_matching.max_new_tokens=1000 & pid=$!; until [ -e "
      "out/run/args.json ]; do sleep 0.05; done; kill -TERM $pid; kill -TERM $pid; wait $pid");
  EXPECT_EQ(twice.exit_code, 130);
}

TEST(Faults, ASecondRunInADirectoryIsRefusedAndNamesTheFirst) {
  test::Program program;
  const std::string config = long_run(program);
  const test::ProcessResult second = program.script(
      "$R train " + config + " 2>/dev/null & pid=$!; steps 1; $R check " + config +
      " 2>check.err; checked=$?; $R train " + config +
      "; code=$?; kill -KILL $pid; wait $pid 2>/dev/null; echo $pid $checked; exit $code");
  EXPECT_EQ(second.exit_code, 4) << second.err;
  EXPECT_THAT(second.out, HasSubstr(" 4\n")) << "`rematch check` says so, too";
  EXPECT_THAT(read_file(program.dir().file("check.err")),
              HasSubstr("another run is using this run directory"));
  EXPECT_THAT(second.err, HasSubstr("another run is using this run directory"));
  EXPECT_THAT(second.err,
              HasSubstr("process " + second.out.substr(0, second.out.find(' ')) + " on "));
  const test::ProcessResult third = program.run("train " + config + " --set training.max_steps=1");
  EXPECT_EQ(third.exit_code, 0) << "the lock of a killed run is stale\n" << third.err;
}

TEST(Faults, ADamagedFileBesideTheWeightsIsNoticed) {
  test::Program program;
  const std::string lines =
      "training: {max_steps: 2, save_strategy: steps, save_steps: 1, resume_from_checkpoint: "
      "latest}\n";
  ASSERT_EQ(program.run("train " + program.config(lines)).exit_code, 0);
  const std::string newest = program.run_dir() + "/checkpoint-2/";
  for (const char* file : {"trainer_state.json", "tokenizer.json", "preprocessor_config.json"}) {
    const std::string path = newest + file, whole = read_file(path);
    std::string damaged = whole;
    damaged[damaged.size() / 2] ^= 1;
    write_file_atomic(path, damaged);
    const test::ProcessResult result =
        program.run("train " + program.config(lines) + " --set training.max_steps=1");
    EXPECT_EQ(result.exit_code, 0) << path << result.err;
    EXPECT_THAT(result.err, HasSubstr("resuming from out/run/checkpoint-1"));
    EXPECT_THAT(result.err, HasSubstr(file)) << "it says what is wrong";
    write_file_atomic(path, whole);
  }
}

TEST(Faults, WeightsThatAreNotFiniteAreNeverSaved) {
  test::Program program;
  fs::copy(test::Program::model(), program.dir().file("model"), fs::copy_options::recursive);
  Json config = read_json_file(program.dir().file("model/config.json"));
  const int unused_id = config["video_token_id"].get<int>();
  config["tie_word_embeddings"] = false;
  program.dir().write("model/config.json", config.dump());
  const auto base = HfDir::open(test::Program::model());
  std::vector<TensorEntry> tensors;
  for (const std::string& name : base->names()) {
    tensors.push_back({name, base->tensor(name)});
    if (!name.ends_with("embed_tokens.weight")) continue;
    tensors.push_back({"lm_head.weight", base->tensor(name)});
    // The embedding of a token that no sample has: the loss stays finite.
    tensors[tensors.size() - 2].tensor[unused_id].fill_(std::numeric_limits<float>::quiet_NaN());
  }
  write_safetensors(program.dir().file("model/model.safetensors"), tensors);
  const test::ProcessResult result = program.run(
      "train " +
      program.config(
          "model: {model: model}\ntraining: {max_steps: 1}\ncustom: {trainer_variant: sft}\n"));
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.err, HasSubstr("the weights are not finite; they are not saved"));
  EXPECT_FALSE(fs::exists(program.run_dir() + "/checkpoint-1"));
  EXPECT_FALSE(fs::exists(program.run_dir() + "/checkpoint-0"));
}

TEST(Faults, AModelThatArrivesWithoutFiniteWeightsIsNamedBesideTheLoss) {
  test::Program program;
  fs::copy(test::Program::model(), program.dir().file("model"), fs::copy_options::recursive);
  const auto base = HfDir::open(test::Program::model());
  std::vector<TensorEntry> tensors;
  for (const std::string& name : base->names()) {
    tensors.push_back({name, base->tensor(name).clone()});
    if (name.ends_with("layers.0.input_layernorm.weight"))
      tensors.back().tensor[0] = std::numeric_limits<float>::quiet_NaN();
  }
  write_safetensors(program.dir().file("model/model.safetensors"), tensors);
  const test::ProcessResult result = program.run(
      "train " +
      program.config(
          "model: {model: model}\ntraining: {max_steps: 1}\ncustom: {trainer_variant: sft}\n"));
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.err, HasSubstr("the loss is not finite"));
  EXPECT_THAT(result.err, HasSubstr("the checkpoint that the run starts from is damaged"));
  EXPECT_THAT(result.err, HasSubstr("layers.0.input_layernorm.weight"));
  EXPECT_THAT(result.err, Not(HasSubstr("resume from an earlier checkpoint")));
}

TEST(Faults, CheckpointsOfAnAbandonedHistoryAreMovedAside) {
  const std::string lines =
      "training: {max_steps: 4, save_strategy: steps, save_steps: 1, lr_scheduler_type: "
      "constant}\n";
  test::Program undisturbed;
  ASSERT_EQ(undisturbed.run("train " + undisturbed.config(lines)).exit_code, 0);
  test::Program program;
  const std::string config = program.config(lines);
  ASSERT_EQ(program.run("train " + config).exit_code, 0);
  const test::ProcessResult back = program.run(
      "train " + config +
      " --set training.resume_from_checkpoint=out/run/checkpoint-2 --set training.max_steps=3");
  ASSERT_EQ(back.exit_code, 0) << back.err;
  EXPECT_THAT(back.err, HasSubstr("abandoned-1"));
  EXPECT_TRUE(fs::exists(program.run_dir() + "/abandoned-1/checkpoint-4/trainer_state.json"));
  EXPECT_TRUE(fs::exists(program.run_dir() + "/abandoned-1/logging.jsonl"));
  EXPECT_FALSE(fs::exists(program.run_dir() + "/checkpoint-4"));
  const test::ProcessResult latest =
      program.run("train " + config + " --set training.resume_from_checkpoint=latest");
  ASSERT_EQ(latest.exit_code, 0) << latest.err;
  EXPECT_THAT(latest.err, HasSubstr("resuming from out/run/checkpoint-3"));
  EXPECT_TRUE(weights_of(program, 4) == weights_of(undisturbed, 4));
}

TEST(Faults, TooLittleMemoryIsToldAsMemory) {
  test::Program program;
  const std::string config = program.config();
  int num_told = 0;
  for (const int mib : {1000, 800, 700, 600, 550, 500, 450}) {
    // its libraries alone do not fit
    if (program.script(fmt::format("ulimit -v {}; $R --version", mib * 1024)).exit_code != 0) break;
    // One thread: libgomp ends the process itself, with its own message, if the stack of a thread
    // does not fit.
    const test::ProcessResult result = program.script(
        fmt::format("ulimit -v {}; OMP_NUM_THREADS=1 $R train {}", mib * 1024, config));
    EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 4)
        << mib << " MiB: " << result.exit_code << "\n"
        << result.err;
    if (result.exit_code != 4) continue;
    ++num_told;
    EXPECT_THAT(result.err, HasSubstr("ulimit -v")) << mib;
  }
  EXPECT_GE(num_told, 1);
}

TEST(Faults, TimeZoneClockAndHostNameChangeNothing) {
  test::Program program;
  expect_no_difference(program, "TZ=Pacific/Kiritimati");
}

TEST(Faults, ADecimalCommaChangesNothing) {
  test::Program program;
  // A locale of our own: most machines have none with a comma, and then a test with its name alone
  // proves nothing.
  if (program.script("localedef -i de_DE -f UTF-8 ./de_DE.UTF-8 2>/dev/null; [ -d de_DE.UTF-8 ]")
          .exit_code != 0) {
    GTEST_SKIP() << "localedef makes no German locale here (Debian package locales)";
  }
  expect_no_difference(program, "LOCPATH=$PWD SHIM_LOCALE=de_DE.UTF-8 LC_ALL=de_DE.UTF-8");
}

TEST(Faults, APromptLongerThanASegmentIsToldBeforeTheModelIsLoaded) {
  test::Program program;
  const test::ProcessResult result =
      program.run("train " + program.config("global_max_length: 16\n"));
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.err, HasSubstr("samples are longer than global_max_length"));
  EXPECT_THAT(result.err, HasSubstr("train.jsonl"));
  EXPECT_THAT(result.err, HasSubstr("line 1 ("));
  EXPECT_THAT(result.err, Not(HasSubstr("model     /")));
}

TEST(Faults, ARunWhoseDirectoryIsRemovedSavesItsStateAndEndsWithAnError) {
  for (const char* saving : {"\"no\"", "steps"}) {
    test::Program program;
    const test::ProcessResult result = program.script(fmt::format(
        "$R train {} --set training.save_strategy={} --set training.save_steps=20 --set "
        "training.max_steps=40 & pid=$!; steps 2; rm -rf out/run; wait $pid",
        long_run(program), saving));
    EXPECT_EQ(result.exit_code, 4) << saving << result.err;
    EXPECT_THAT(result.err, HasSubstr("out/run/logging.jsonl")) << saving;
    EXPECT_THAT(result.err, HasSubstr("it was removed or moved")) << saving;
    EXPECT_EQ(fs::exists(program.run_dir() + "/checkpoint-20"), std::string(saving) == "steps");
    EXPECT_FALSE(fs::exists(program.run_dir() + "/checkpoint-40"));
  }
}

TEST(Faults, SpecialFilesAreErrorsInTime) {
  test::Program program;
  const std::string config = program.config();
  ASSERT_EQ(program.script("mkfifo pipe").exit_code, 0);
  for (const std::string& path :
       std::vector<std::string>{"/dev/zero", "pipe", "/tmp", "/dev/tty"}) {
    const std::string record =
        "{\"images\": [\"" + path + "\"], \"width\": 64, \"height\": 64, \"objects\": []}\n";
    const std::string data = program.dir().write("special.jsonl", record);
    for (const auto& [what, command] : std::vector<std::pair<std::string, std::string>>{
             {"configuration", "check " + path},
             {"JSONL", "train " + config + " --set custom.train_jsonl=" + path},
             {"image", "train " + config + " --set custom.train_jsonl=" + data},
             {"prompt", "check " + config + " --set custom.user_prompt=x.txt"}}) {
      if (what == "prompt") program.script("ln -sf " + path + " x.txt");
      const test::ProcessResult result = program.script("timeout -k 1 60 $R " + command);
      EXPECT_TRUE(result.exit_code >= 2 && result.exit_code <= 4)
          << what << " " << path << ": " << result.exit_code << result.err;
    }
    for (const char* file : {"tokenizer.json", "chat_template.jinja", "config.json",
                             "preprocessor_config.json", "model.safetensors"}) {
      fs::remove_all(program.dir().file("model"));
      fs::copy(test::Program::model(), program.dir().file("model"), fs::copy_options::recursive);
      program.script(fmt::format("rm -f model/{0}; ln -s $(realpath {1}) model/{0}", file, path));
      const test::ProcessResult result =
          program.script("timeout -k 1 60 $R train " + config + " --set model.model=model");
      EXPECT_TRUE(result.exit_code >= 2 && result.exit_code <= 4)
          << file << " " << path << ": " << result.exit_code << result.err;
    }
  }
}

TEST(Faults, ImagesOutsideTheirDirectoryAreCountedAndNothingIsWrittenOutside) {
  test::Program program;
  fs::copy(test::Program::golden("train.jsonl"), program.dir().file("train.jsonl"));
  fs::create_directory_symlink(test::Program::golden("images"), program.dir().file("images"));
  const test::ProcessResult checked = program.run("data check train.jsonl");
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("8 images lie outside the directory of the JSONL"));
  const test::ProcessResult inside =
      program.run("data check " + test::Program::golden("train.jsonl"));
  EXPECT_THAT(inside.out, Not(HasSubstr("outside the directory")));
  const std::string config = program.config(
      "custom: {train_jsonl: train.jsonl, extra: {rollout_matching: {max_new_tokens: 4}}}\n");
  const test::ProcessResult linked = program.run("train " + config);
  EXPECT_EQ(linked.exit_code, 0) << linked.err;
  EXPECT_THAT(linked.err, Not(HasSubstr("outside")));  // nothing that a user could fix
}

}  // namespace rematch
