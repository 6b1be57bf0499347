#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "assembly/rollouts.h"
#include "assembly/run_inputs.h"
#include "assembly/session.h"
#include "base/error.h"
#include "base/output_file.h"
#include "cli/commands.h"
#include "cli/model_config.h"
#include "estep/make_target.h"
#include "flow/object_json.h"
#include "ranks/ranks.h"
#include "stages/segment_json.h"

namespace rematch {
namespace {

Json line_of(const ScoredRollout& one, const Session& session) {
  const Tokenizer& tokenizer = *session.tokenizer;
  Json line;
  line["sample_id"] = one.sample->sample_id;
  line["images"] = one.sample->image_paths;
  line["width"] = one.sample->width_px;
  line["height"] = one.sample->height_px;
  if (!one.sample->prompt.empty()) line["prompt"] = one.sample->prompt;
  line["text"] = tokenizer.decode_bytes(one.rollout.response_token_ids);
  line["finish_reason"] = finish_reason_name(one.rollout.finish_reason);
  line["prompt_token_ids"] = one.rollout.prompt_token_ids;
  line["response_token_ids"] = one.rollout.response_token_ids;
  if (!one.rollout.token_logprobs.empty() || one.rollout.response_token_ids.empty())
    line["token_logprobs"] = one.rollout.token_logprobs;
  line["status"] = parse_status_name(one.parsed.status);
  line["dropped_invalid"] = one.parsed.dropped_invalid;
  line["prefix_text"] = one.parsed.prefix_text;
  line["predictions"] = Json::array();
  for (const ParsedObject& object : one.parsed.objects)
    line["predictions"].push_back(object_json(object.desc, object.geometry));
  if (!one.scores.empty()) line["scores"] = one.scores;
  line["ground_truth"] = Json::array();
  for (const SceneObject& object : one.ground_truth)
    line["ground_truth"].push_back(object_json(object.desc, object.geometry));
  line["pairs"] = one.matching.pairs;
  line["false_positives"] = one.matching.false_positives;
  line["false_negatives"] = one.matching.false_negatives;
  line["gating_rejections"] = one.matching.gating_rejections;
  line["matched_maskiou_sum"] = one.matching.matched_maskiou_sum;
  const TargetSettings settings = session.target_settings();
  line["target"] = segment_json(build_target(one, *session.format, settings));
  line["target"]["policy"] = settings.policy;
  return line;
}

}  // namespace

int run_rollout(const RunArguments& arguments, const std::string& split, const std::string& out) {
  require_alone("rematch rollout");
  const AskedModel asked = load_asked_model(arguments);
  const ConfigResult& result = asked.config;
  const Settings& settings = result.settings;
  const bool use_val = split == "val" || (split.empty() && settings.data.val_jsonl);
  if (use_val && !settings.data.val_jsonl) {
    throw UserError(ErrorKind::kConfig, {.error = "there is no validation data to roll out",
                                         .where = arguments.config_path,
                                         .what = "custom.val_jsonl is not set",
                                         .fix = "set custom.val_jsonl or use --split train"});
  }
  const std::unique_ptr<Terminal> terminal = Terminal::standard();
  if (!asked.note.empty()) terminal->say(asked.note);
  for (const Warning& warning : result.warnings)
    terminal->warn(warning.text + " (" + warning.where + ")");
  const std::string path = out.empty() ? settings.output.run_dir + "/rollouts.jsonl" : out;
  if (out.empty()) make_directories(settings.output.run_dir);
  InputFiles inputs = run_inputs(result);
  OutputFile file(path, inputs);
  const SessionNeeds needs{.val_data = true, .evaluates_train_data = !use_val, .rollouts = true};
  const Session session(settings, arguments.device, needs, alone(), *terminal);
  asked.load_adapter(session);
  add_images(inputs, *session.val_data);
  inputs.refuse(path);
  const Rollouts rollouts = make_rollouts(session);
  make_evaluation(session, rollouts, false)->run(*terminal, [&](const ScoredRollout& one) {
    file.write(line_of(one, session).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  });
  file.commit();
  terminal->say(fmt::format("wrote {} lines to {}", session.val_data->size(), path));
  return 0;
}

}  // namespace rematch
