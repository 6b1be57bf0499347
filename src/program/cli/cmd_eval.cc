// `rematch eval CONFIG|MODEL_DIR [JSONL]`
#include "program/cli/cmd_eval.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "engine/ranks/phase.h"
#include "program/assembly/engine.h"
#include "program/assembly/parts.h"
#include "program/assembly/rank_process.h"
#include "program/cli/command_set.h"
#include "program/cli/eval_output.h"

namespace rematch {
namespace {

Evaluated subject_of(const Job& job, const Asked& asked) {
  const std::string& checkpoint = job.source.checkpoint.path;
  return {.model = checkpoint,
          .name = checkpoint,
          .checkpoint = checkpoint,
          .has_own_weights = has_own_weights(job.source),
          .has_own_question = !names_configuration(asked.model) && asked.overrides.empty() &&
                              asked.answer_format.empty(),
          .run_dir = job.settings().output.run_dir,
          .records = *job.data.val,
          .inputs = job.inputs(),
          .labels = label_match(job),
          .has_answers = job.rolls_out()};
}

}  // namespace

int run_eval(const EvalArguments& arguments) {
  const World world = world_from_environment();
  JobSource source = ask_about_records(arguments.asked);
  RankProcess process(world, source.config, arguments.device);
  const Place place = process.place();
  // The links of a run may have moved between the looks of two ranks: all ask about the checkpoint
  // that rank 0 found.
  run_phase(place.group, "start", [&] {
    Asked asked = arguments.asked;
    asked.model = place.group.broadcast(source.checkpoint.path);
    if (!names_configuration(arguments.asked.model) && asked.model != source.checkpoint.path)
      source = ask_about_records(asked);
  });
  Asking asking(std::move(source), Use::kEvaluate, place);
  const Job& job = asking.job();
  EvalOutput output(subject_of(job, arguments.asked), job.terminal, job.group);
  asking.start();
  run_phase(job.group, "evaluate", [&] {
    const auto evaluation = make_evaluation(job, asking.model(), asking.engine(), kExtraGates);
    const EvaluationResult result =
        evaluation->run(job.terminal, [&](const ScoredRollout& rollout) { output.add(rollout); });
    if (job.is_first()) output.write(result, arguments.all_scores);
  });
  return 0;
}

Command add_eval_command(CLI::App& app) {
  const auto run = +[](const EvalArguments& given) {
    return given.answers.answers.empty()
               ? run_eval(given)
               : run_eval_answers(given.asked, given.answers, given.all_scores);
  };
  const auto [command, eval, arguments] = make_command(
      app, "eval", "roll out, parse and match custom.val_jsonl; print precision, recall, F1", run,
      {"my.yaml", "my.yaml --set model.model=output/run/checkpoint-100", "stock data/val.jsonl",
       "data/val.jsonl --answers answers.jsonl --format coord_tokens"},
      /*writes_files=*/true);
  add_ask_arguments(eval, arguments);
  add_answers_options(eval, arguments.answers);
  eval.add_flag("--all", arguments.all_scores,
                "print every score, and tables of classes and object counts");
  return command;
}

}  // namespace rematch
