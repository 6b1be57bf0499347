#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"
#include "model/checkpoint/peft.h"
#include "model/stock_checkpoint.h"

namespace rematch {
namespace {

const char* const kDora =
    "tuner: {train_type: lora, use_dora: true, lora_rank: 3, lora_alpha: 6, lora_dropout: 0.1, "
    "target_modules: [all-linear]}\n"
    "training: {packing: true, max_steps: 3}\n"
    "custom: {extra: {rollout_matching: {post_rollout_pack_scope: window, rollout_buffer: "
    "{enabled: true, m_steps: 2}}}}\n";

std::string losses(const std::string& path) {
  std::istringstream lines(read_file(path));
  std::string text, line;
  while (std::getline(lines, line)) {
    const Json logged = parse_json(line, path);
    for (const char* key : {"loss", "grad_norm"})
      text += logged.contains(key) ? logged[key].dump() + "\n" : "";
  }
  return text;
}

}  // namespace

TEST(TrainLora, StageTwoTrainsAdaptersOnlyAndRepeatsToTheBit) {
  std::string weights, log;
  for (int run = 0; run < 2; ++run) {
    test::Program program;
    const test::ProcessResult result = program.run("train " + program.config(kDora));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const std::string checkpoint = program.run_dir() + "/checkpoint-3";
    EXPECT_FALSE(std::filesystem::exists(checkpoint + "/model.safetensors"));
    EXPECT_TRUE(std::filesystem::exists(checkpoint + "/trainer_state.json"));
    const PeftAdapter adapter = read_peft_adapter(checkpoint);
    EXPECT_EQ(adapter.config.base_model, test::Program::model());
    EXPECT_EQ(adapter.config.targets.target_modules.size(), 39u);
    ASSERT_EQ(adapter.tensors.size(), 3u * 39u);
    int num_moved = 0;
    for (const TensorEntry& entry : adapter.tensors) {
      if (entry.name.find("lora_B") != std::string::npos &&
          entry.tensor.abs().max().item<double>() > 0)
        ++num_moved;
    }
    EXPECT_EQ(num_moved, 39);
    const std::string now = read_file(checkpoint + "/adapter_model.safetensors"),
                      log_now = losses(program.run_dir() + "/logging.jsonl");
    if (run == 1) {
      EXPECT_EQ(now, weights);
      EXPECT_EQ(log_now, log);
    }
    weights = now;
    log = log_now;
  }
}

TEST(TrainLora, AResumedRunEndsWithTheBitsOfAnUninterruptedOne) {
  test::Program whole, parts;
  const std::string lines = std::string(kDora) + "data: {dataloader_num_workers: 1}\n";
  ASSERT_EQ(whole.run("train " + whole.config(lines)).exit_code, 0);
  const std::string config = parts.config(lines);
  // The cosine schedule looks ahead to max_steps, so the first half is cut short by its saves
  // instead.
  const test::ProcessResult first = parts.run(
      "train " + config + " --set training.save_strategy=steps --set training.save_steps=1");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  std::filesystem::remove_all(parts.run_dir() + "/checkpoint-2");
  std::filesystem::remove_all(parts.run_dir() + "/checkpoint-3");
  const test::ProcessResult second =
      parts.run("train " + config + " --set training.resume_from_checkpoint=latest");
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_NE((second.out + second.err).find("resuming after step 1"), std::string::npos)
      << second.out << second.err;
  const std::string weights = "/checkpoint-3/adapter_model.safetensors";
  EXPECT_EQ(read_file(parts.run_dir() + weights), read_file(whole.run_dir() + weights));
}

TEST(TrainLora, MergeMakesAModelThatEvalTakesAndAnAdapterItDoesNot) {
  test::Program program;
  const std::string config = program.config(kDora);
  ASSERT_EQ(program.run("train " + config).exit_code, 0);
  const test::ProcessResult refused = program.run(
      "eval " + config + " --set model.model=out/run/checkpoint-3 --set tuner.train_type=full");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("rematch merge out/run/checkpoint-3"), std::string::npos)
      << refused.err;
  const test::ProcessResult merged = program.run("merge out/run/checkpoint-3 --out merged");
  ASSERT_EQ(merged.exit_code, 0) << merged.err;
  EXPECT_NE(merged.out.find("39 layers"), std::string::npos) << merged.out;
  const test::ProcessResult evaluated =
      program.run("eval " + config + " --set model.model=merged --set tuner.train_type=full");
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_EQ(program.run("merge out/run/checkpoint-3 --out merged").exit_code, 2);
}

TEST(TrainLora, CommandsThatAskAModelTakeTheRunOfAnAdapter) {
  test::Program program;
  ASSERT_EQ(program.run("train " + program.config(kDora)).exit_code, 0);
  ASSERT_EQ(program.run("merge out/run --out merged").exit_code, 0);
  const std::string val = " " + test::Program::golden("val.jsonl");
  // The run knows its validation data.
  const test::ProcessResult asked = program.run("eval out/run");
  ASSERT_EQ(asked.exit_code, 0) << asked.err;
  EXPECT_NE(asked.err.find("taking out/run/checkpoint-3"), std::string::npos) << asked.err;
  EXPECT_EQ(read_json_file(program.run_dir() + "/eval_results.json")["model"],
            "out/run/checkpoint-3");
  const auto rollout = [&](const std::string& model) {
    const test::ProcessResult result = program.run("rollout " + model + val + " --out r.jsonl");
    EXPECT_EQ(result.exit_code, 0) << model << result.err;
    const std::string lines = read_file(program.dir().file("r.jsonl"));
    return parse_json(lines.substr(0, lines.find('\n')), "r.jsonl");
  };
  const Json adapter = rollout("out/run"), merged = rollout("merged"),
             base = rollout(test::Program::model());
  EXPECT_EQ(adapter["response_token_ids"], merged["response_token_ids"]);
  EXPECT_NE(adapter["token_logprobs"], base["token_logprobs"]);
  const test::ProcessResult probed = program.run("probe out/run" + val + " --samples 1");
  EXPECT_EQ(probed.exit_code, 0) << probed.err;
  const test::ProcessResult full = program.run("merge merged --out again");
  EXPECT_EQ(full.exit_code, 2);
  EXPECT_NE(full.err.find("this is a full model, not an adapter"), std::string::npos) << full.err;
}

// Rollouts, training, an evaluation and a merge on weights of 4 bits, in every family.
TEST(TrainLora, EveryFamilyTrainsOnWeightsOfFourBits) {
  for (const std::string model : {"tiny_tied", "windows_tied", "delta_tied"}) {
    SCOPED_TRACE(model);
    test::Program program;
    const std::string config = program.config(
        "model: {load_in_4bit: true, model: " + test::source_path("tests/golden/model/" + model) +
        "}\ntuner: {train_type: lora, lora_rank: 2}\n"
        "custom: {extra: {rollout_matching: {rollout_backend: native, target_policy: rewrite}}}\n");
    const test::ProcessResult trained = program.run("train " + config);
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    EXPECT_NE(trained.err.find("4 bits"), std::string::npos) << trained.err;
    const std::string checkpoint = program.run_dir() + "/checkpoint-2";
    EXPECT_FALSE(std::filesystem::exists(checkpoint + "/model.safetensors"));
    const std::string ask = "rollout " + checkpoint + " " + test::Program::golden("val.jsonl") +
                            " --out r.jsonl --set custom.extra.rollout_matching.max_new_tokens=4";
    for (const std::string& command :
         {ask, "predict " + checkpoint + " " + test::Program::golden("images/0.png")}) {
      const test::ProcessResult asked = program.run(command);
      ASSERT_EQ(asked.exit_code, 0) << asked.err;
      EXPECT_NE(asked.err.find("the base is packed to 4 bits"), std::string::npos) << asked.err;
      EXPECT_NE(asked.err.find("\n4 bits    "), std::string::npos) << asked.err;
    }
    const test::ProcessResult full = program.run(ask + " --set model.load_in_4bit=false");
    EXPECT_EQ(full.exit_code, 0) << full.err;
    EXPECT_EQ(full.err.find("4 bits"), std::string::npos) << full.err;
    // Scores of other weights than the checkpoint's do not replace its own.
    const test::ProcessResult other =
        program.run("eval " + checkpoint + " " + test::Program::golden("val.jsonl") +
                    " --set model.load_in_4bit=false");
    EXPECT_EQ(other.exit_code, 0) << other.err;
    const std::string results = program.run_dir() + "/eval_results";
    EXPECT_TRUE(std::filesystem::exists(results + "-other-weights.json"));
    EXPECT_FALSE(std::filesystem::exists(results + ".json"));
    const test::ProcessResult merged = program.run("merge " + checkpoint + " --out merged");
    ASSERT_EQ(merged.exit_code, 0) << merged.err;
    const std::string written = read_file(program.dir().file("merged/config.json"));
    EXPECT_EQ(written.find("quantization_config"), std::string::npos);
    EXPECT_EQ(program.run("eval merged " + test::Program::golden("val.jsonl")).exit_code, 0);
  }
}

TEST(TrainLora, StageOneTrainsAnAdapterAndLowersItsLoss) {
  test::Program program;
  const test::ProcessResult result = program.run(
      "train " +
      program.config("custom: {trainer_variant: sft}\n"
                     "tuner: {train_type: lora, lora_rank: 4, lora_dropout: 0, freeze_vit: true,\n"
                     "  modules_to_save: [merger.norm]}\n"
                     "training: {max_steps: 30, learning_rate: 2.0e-2}\n"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::istringstream lines(losses(program.run_dir() + "/logging.jsonl"));
  double first = 0, last = 0, grad_norm = 0;
  lines >> first;
  while (lines >> grad_norm >> last) {
  }
  EXPECT_LT(last, 0.9 * first);
  const PeftAdapter adapter = read_peft_adapter(program.run_dir() + "/checkpoint-30");
  EXPECT_EQ(adapter.config.targets.modules_to_save, std::vector<std::string>{"merger.norm"});
}

TEST(TrainLora, FreshCoordTokensAreTrainedWithTheAdapterAndAWarningSaysWhenTheyAreNot) {
  test::Program program;
  const test::CheckpointCopy stock = test::stock_checkpoint(400);
  const test::ProcessResult added = program.run("add-coord-tokens " + stock.path() + " fresh");
  ASSERT_EQ(added.exit_code, 0) << added.err;
  const std::string config = program.config(
      "model: {model: fresh}\n"
      "custom: {trainer_variant: sft}\n"
      "tuner: {train_type: lora, lora_rank: 4, lora_dropout: 0, freeze_vit: true}\n"
      "training: {max_steps: 30, learning_rate: 1.0e-2}\n");
  const test::ProcessResult unaware =
      program.run("train " + config + " --set training.max_steps=1");
  ASSERT_EQ(unaware.exit_code, 0) << unaware.err;
  EXPECT_NE((unaware.out + unaware.err).find("never trained"), std::string::npos) << unaware.err;
  const std::string tokens =
      " --set tuner.trainable_token_indices=[coord_tokens] --set training.run_name=rows";
  const test::ProcessResult result = program.run("train " + config + tokens);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ((result.out + result.err).find("never trained"), std::string::npos) << result.err;
  const test::ProcessResult merged = program.run("merge out/rows/checkpoint-30 --out merged");
  ASSERT_EQ(merged.exit_code, 0) << merged.err;
  EXPECT_NE(merged.out.find("the rows of 1000 tokens"), std::string::npos) << merged.out;
  EXPECT_EQ(program.run("eval " + config + " --set model.model=merged --set tuner.train_type=full")
                .exit_code,
            0);
}

TEST(TrainLora, BadTunerKeysAreConfigurationErrorsBeforeTheModelIsLoaded) {
  const std::pair<const char*, const char*> cases[] = {
      {"tuner.target_modules=[q_prj]", "q_proj"},
      {"tuner.target_regex='layers\\.(1|2'", "does not compile"},
      {"tuner.target_regex=layers", "matches no module"},
      {"tuner.lora_rank=0", "lora_rank"},
      {"tuner.modules_to_save=[nothing]", "nothing"},
      {"tuner.target_modules=[lm_head]", "tied"},
      {"tuner={freeze_llm: true, freeze_vit: true, freeze_aligner: true}", "nothing is trainable"},
      {"tuner={freeze_llm: true, target_modules: [q_proj]}", "frozen"}};
  for (const auto& [assignment, expected] : cases) {
    test::Program program;
    const std::string config = program.config("tuner: {train_type: lora}\n");
    const test::ProcessResult result =
        program.run("train " + config + " --set \"" + assignment + "\"");
    EXPECT_EQ(result.exit_code, 2) << assignment << result.err;
    EXPECT_NE(result.err.find(expected), std::string::npos) << assignment << "\n" << result.err;
    // the line that names a loaded model
    EXPECT_EQ(result.err.find("float32, "), std::string::npos) << result.err;
  }
}

}  // namespace rematch
