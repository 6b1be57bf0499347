// `rematch rollout CONFIG|MODEL_DIR [JSONL]`
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "learn/estep/make_target.h"
#include "program/assembly/engine.h"
#include "program/assembly/rank_process.h"
#include "program/cli/arguments.h"
#include "program/cli/command_set.h"
#include "program/cli/eval_files.h"
#include "tools/stages/scene_input.h"

namespace rematch {
namespace {

/// The target settings of the job; bins cannot be appended to an answer in digits.
TargetSettings target_settings(const Job& job) {
  TargetSettings target = job.settings().target;
  const AnswerFormat& format = *job.files.format;
  if (format.coords() == nullptr && target.policy == default_target_policy(true))
    target.policy = format.default_policy();
  return target;
}

Json line_of(const ScoredRollout& rollout, const Job& job) {
  const Tokenizer& tokenizer = *job.files.tokenizer;
  Json line = rollout_json(rollout);
  line["images"] = rollout.sample->image_paths;
  if (!rollout.sample->prompt.empty()) line["prompt"] = rollout.sample->prompt;
  line["text"] = tokenizer.decode_bytes(rollout.rollout.response_token_ids);
  line["finish_reason"] = finish_reason_name(rollout.rollout.finish_reason);
  line["prompt_token_ids"] = rollout.rollout.prompt_token_ids;
  line["response_token_ids"] = rollout.rollout.response_token_ids;
  if (!rollout.rollout.token_logprobs.empty() || rollout.rollout.response_token_ids.empty())
    line["token_logprobs"] = rollout.rollout.token_logprobs;
  line["dropped_invalid"] = rollout.parsed.dropped_invalid;
  line["prefix_text"] = rollout.parsed.prefix_text;
  line["false_positives"] = rollout.matching.false_positives;
  line["false_negatives"] = rollout.matching.false_negatives;
  line["gating_rejections"] = rollout.matching.gating_rejections;
  line["matched_maskiou_sum"] = rollout.matching.matched_maskiou_sum;
  const TargetSettings settings = target_settings(job);
  line["target"] = segment_json(build_target(rollout, *job.files.format, settings));
  line["target"]["policy"] = settings.policy;
  return line;
}

std::string written_line(const ScoredRollout& rollout, const Job& job) {
  std::string line =
      line_of(rollout, job).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  escape_line_ends(line);
  return line;
}

struct RolloutArguments : AskArguments {
  std::string split;  ///< "val" or "train"; empty = val if the configuration has validation data
  std::string out;    ///< empty = rollouts.jsonl in the run directory
};

Use chosen_use(const RolloutArguments& arguments, const Settings& settings) {
  const bool takes_val =
      arguments.split.empty() ? settings.data.val_jsonl.has_value() : arguments.split == "val";
  return takes_val ? Use::kAnswer : Use::kAnswerTrain;
}

/// rollouts.jsonl in the run of the checkpoint that answers, else in the configured run directory.
std::string default_path(const Job& job) {
  const std::string& owner = job.source.checkpoint.run;
  const std::string& run_dir = owner.empty() ? job.settings().output.run_dir : owner;
  make_directories(run_dir);
  return join_path(run_dir, "rollouts.jsonl");
}

int run_rollout(const RolloutArguments& arguments) {
  require_alone("rematch rollout");
  JobSource source = ask_about_records(arguments.asked);
  RankProcess process(World{}, source.config, arguments.device);
  const Use use = chosen_use(arguments, source.config.settings);
  Asking asking(std::move(source), use, process.place());
  const Job& job = asking.job();
  const std::string path = arguments.out.empty() ? default_path(job) : arguments.out;
  OutputFile file(path, job.inputs());
  asking.start();
  asking.answer_records(
      [&](const ScoredRollout& rollout) { file.write(written_line(rollout, job)); });
  file.commit();
  job.terminal.say(fmt::format("wrote {} lines to {}", job.data.val->size(), path));
  return 0;
}

}  // namespace

Command add_rollout_command(CLI::App& app) {
  const auto [command, rollout, arguments] = make_command(
      app, "rollout", "write each sample's rollout, parse and match as JSON lines", run_rollout,
      {"my.yaml", "my.yaml --split train --out rollouts.jsonl"}, /*writes_files=*/true);
  add_ask_arguments(rollout, arguments);
  rollout
      .add_option("--split", arguments.split,
                  "val or train; default: val if the configuration has validation data")
      ->check(CLI::IsMember({"val", "train"}));
  rollout.add_option("--out", arguments.out,
                     "file to write, replaced when all lines are there; default: rollouts.jsonl "
                     "in the run of the checkpoint that answers, else in the configured run "
                     "directory");
  return command;
}

}  // namespace rematch
