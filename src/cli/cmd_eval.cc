#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "assembly/inputs_identity.h"
#include "assembly/rollouts.h"
#include "assembly/run_identity.h"
#include "assembly/run_inputs.h"
#include "assembly/session.h"
#include "assembly/vllm_setup.h"
#include "base/error.h"
#include "base/output_file.h"
#include "cli/commands.h"
#include "cli/eval_files.h"
#include "cli/eval_tables.h"
#include "cli/rank_process.h"
#include "cli/model_config.h"
#include "ranks/phase.h"
#include "evaluate/coco_scene.h"
#include "observe/catalog.h"

namespace rematch {
namespace {

/// Writes the results and shows them. @param model  directory of the model or adapter
void tell(EvaluationResult evaluated, const CocoEvaluator& coco,
          const std::optional<EvalFiles>& files, const InputFiles& inputs, const Session& session,
          const std::string& model, bool all_scores, Terminal& terminal) {
  const Settings& settings = session.settings;
  const CocoResult coco_scores = coco.scores();
  if (files) {
    for (auto& value : reduce_metrics(coco_metrics(coco_scores), MetricScope::kCoco))
      evaluated.values.push_back(std::move(value));
  }

  Json json;
  for (const auto& [name, value] : evaluated.values) json[name] = value;
  if (!coco_scores.per_class.empty()) json["coco_per_class"] = coco_per_class_json(coco_scores);
  json["model"] = model;
  json["val_jsonl"] = session.val_data->path();
  json["num_samples"] = session.val_data->size();
  json["eval_set"] = evaluated.eval_set;
  if (files) files->add_to(json, coco, coco_scores);
  const std::string path = settings.output.run_dir + "/eval_results.json";
  write_output(path, inputs, python_json(json, 2) + "\n");
  if (files) files->write(json, terminal);
  print_scores(evaluated.values, json, all_scores, terminal);
  if (all_scores && files && !coco.ranks_by_score())
    terminal.say("COCO's scores rank by the order of the answers: no probabilities are known here");
  terminal.say("wrote " + path);
  if (files) terminal.say("wrote " + files->result_path() + " and files next to it");
}

/// Evaluates the checkpoint of rank 0 in place of another one. @param path  of rank 0's model; may
/// be empty
void take_path(AskedModel& asked, const RunArguments& arguments, const std::string& path,
               Terminal& terminal) {
  if (!path.empty() && path != asked.path) {
    RunArguments agreed = arguments;
    agreed.config_path = path;
    asked = load_asked_model(agreed);
  }
  if (!asked.note.empty()) terminal.say(asked.note);
}

/// @throws UserError (config)
void require_val_data(const Settings& settings, const RunArguments& arguments) {
  if (settings.data.val_jsonl) return;
  throw UserError(ErrorKind::kConfig, {.error = "no validation data to evaluate on",
                                       .where = arguments.config_path,
                                       .what = "custom.val_jsonl is not set",
                                       .fix = "set custom.val_jsonl"});
}

}  // namespace

int run_eval(const RunArguments& arguments, bool all_scores) {
  const World world = world_from_environment();
  AskedModel asked = load_asked_model(arguments);
  ConfigResult& result = asked.config;
  const Settings& settings = result.settings;
  require_val_data(settings, arguments);
  RankProcess process(world, result, arguments.device);
  Group& group = process.group();
  const bool is_first = group.rank() == 0;
  // A run that is still training moves its links: rank 0's checkpoint is that of all ranks.
  const std::string path = group.broadcast(asked.is_named ? asked.path : "");
  std::unique_ptr<Group> engine_ranks;
  std::optional<Session> prepared;
  Rollouts rollouts;
  std::optional<EvalFiles> files;
  InputFiles inputs;
  run_phase(group, "start", [&] {
    take_path(asked, arguments, path, process.terminal());
    inputs = run_inputs(result);
    meet_with_configuration(result, group);
    const bool needs_rollouts = settings.is_stage_2() || settings.rollouts;
    if (needs_rollouts) engine_ranks = split_engine_ranks(settings, group);
    if (is_first) make_directories(settings.output.run_dir);
    prepared.emplace(settings, process.device(),
                     SessionNeeds{.val_data = true,
                                  .val_truth = !settings.is_stage_2(),
                                  .rollouts = needs_rollouts,
                                  .engine_ranks = engine_ranks.get()},
                     group, process.terminal());
    asked.load_adapter(*prepared);
    meet_with_inputs(*prepared, group);
    group.barrier();  // no rank starts a shared engine when another one has failed before it
    if (needs_rollouts) rollouts = make_rollouts(*prepared);
    add_images(inputs, *prepared->val_data);
    inputs.refuse(settings.output.run_dir + "/eval_results.json");
    if (rollouts.val_scorer && is_first)
      files.emplace(settings.output.run_dir, asked.path, inputs,
                    rollouts.val_scorer->options().labels);
  });

  const Session& session = *prepared;
  CocoEvaluator coco;
  const auto add = [&](const ScoredRollout& one) {
    const auto boxes = [&](const std::vector<SceneObject>& objects,
                           const std::vector<double>& scores) {
      return labelled_boxes(objects, one.sample->width_px, one.sample->height_px,
                            rollouts.val_scorer->options().labels, scores);
    };
    coco.add(boxes(one.ground_truth, {}), boxes(to_scene(one.parsed.objects), one.scores));
    files->add(one);
  };
  run_phase(group, "evaluate", [&] {
    const EvaluationResult evaluated =
        make_evaluation(session, rollouts, !settings.is_stage_2(), {0.3, 0.5}, group)
            ->run(process.terminal(), add);
    if (is_first)
      tell(evaluated, coco, files, inputs, session, asked.path, all_scores, process.terminal());
  });
  return 0;
}

}  // namespace rematch
