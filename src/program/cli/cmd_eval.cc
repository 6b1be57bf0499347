// `rematch eval CONFIG|MODEL_DIR [JSONL]`
#include "program/cli/cmd_eval.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "engine/ranks/phase.h"
#include "program/assembly/make_evaluation.h"
#include "program/assembly/rank_process.h"
#include "program/cli/command_set.h"
#include "program/cli/eval_output.h"

namespace rematch {

int run_eval(const EvalArguments& arguments) {
  const World world = world_from_environment();
  JobSource source = load_scored_model(arguments.model);
  RankProcess process(world, source.config, arguments.model.device);
  const Job job = open_job(std::move(source), Use::kEvaluate, process.place());
  EvalOutput output(job);
  const std::shared_ptr<Model> model = load_model(job);
  std::optional<Engine> engine;
  if (job.rolls_out()) engine.emplace(start_engine(job, model, job.settings().generation));
  run_phase(job.group, "evaluate", [&] {
    const auto evaluation = make_evaluation(job, model, engine, /*extra_gates=*/{0.3, 0.5});
    const EvaluationResult result =
        evaluation->run(job.terminal, [&](const ScoredRollout& rollout) { output.add(rollout); });
    if (job.is_first()) output.write(result, arguments.all_scores);
  });
  return 0;
}

Command add_eval_command(CLI::App& app) {
  CLI::App* eval = app.add_subcommand(
      "eval", "roll out, parse and match custom.val_jsonl; print precision, recall, F1");
  const auto arguments = std::make_shared<EvalArguments>();
  add_scored_model_arguments(*eval, arguments->model);
  add_answers_options(*eval, arguments->answers);
  eval->add_flag("--all", arguments->all_scores,
                 "print every score, and tables of classes and object counts");
  eval->footer(
      "Examples:\n  rematch eval my.yaml\n  rematch eval my.yaml --set "
      "model.model=output/run/checkpoint-100\n  rematch eval stock data/val.jsonl\n  rematch eval "
      "data/val.jsonl --answers answers.jsonl --format coord_tokens");
  const auto run = [arguments] {
    const auto& [model, answers, all_scores] = *arguments;
    return answers.answers.empty() ? run_eval(*arguments)
                                   : run_eval_answers(model, answers, all_scores);
  };
  return {eval, run, /*writes_files=*/true};
}

}  // namespace rematch
