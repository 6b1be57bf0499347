// Keys of custom.extra.rollout_matching (stage 2).
#include "engine/rollout/backend/backends.h"
#include "learn/estep/match/match_policy.h"
#include "learn/estep/teach/target_policy.h"
#include "program/config/keys.h"

namespace rematch {
namespace {

constexpr TrainerVariant kStage2 = TrainerVariant::kRolloutMatching;

std::string path(const char* name) { return kRolloutMatching + "." + name; }

std::vector<KeySpec> generation_keys() {
  const KeysOf all(path(""), part<>);
  const KeysOf key(path(""), part<&Settings::generation>);
  const KeysOf native(path("native."), part<&Settings::generation, &GenerationSettings::native>);
  return {
      all("rollout_backend", &Settings::backend)
          .one_of(rollout_backends().names())
          .says("backend that generates rollouts: " + rollout_backends().meanings()),
      key("rollout_generate_batch_size", &GenerationSettings::batch_size)
          .within(1, 1e6)
          .says("samples per generate call of one rank (`hf`)"),
      native.of<&NativeSettings::max_num_seqs>().within(1, 1e6).says(
          "most concurrent sequences of the `native` backend"),
      native.of<&NativeSettings::kv_cache_gib>()
          .null_by_default()
          .above(0)
          .up_to(1e6)
          .null_is({"auto"})
          .says("size of the `native` backend's key/value cache in GiB"),
      text_key(path("decode_mode"), "greedy")
          .one_of({"greedy"})
          .refuses("=beam", "beam search is not supported: set `decode_mode: greedy`")
          .says("only `greedy`; `temperature` above 0 turns on sampling"),
      key.of<&GenerationSettings::max_new_tokens>()
          .within(1, 1 << 24)
          .says("most tokens in a rollout"),
      key.of<&GenerationSettings::temperature>().within(0, 1000).says("0 is greedy"),
      key.of<&GenerationSettings::top_p>().within(0, 1).above(0).says("nucleus sampling; 1 is off"),
      key.of<&GenerationSettings::top_k>().null_by_default().at_least(-1).null_is({"off"}).says(
          "samples from the k most likely tokens; off, 0 and -1: from all"),
      key.of<&GenerationSettings::repetition_penalty>().within(1e-3, 1e3).says(
          "penalty on tokens of the prompt and the answer, as in transformers; 1 is off"),
  };
}

std::vector<KeySpec> repeat_guard_keys() {
  const KeysOf guard(path("repeat_terminate."),
                     part<&Settings::generation, &GenerationSettings::repeat_terminate>);
  return {
      guard.of<&RepeatGuardSettings::enabled>().says("ends rollouts that repeat themselves"),
      guard.of<&RepeatGuardSettings::min_new_tokens>().at_least(0).says(
          "the guard starts at this many generated tokens"),
      guard.of<&RepeatGuardSettings::max_consecutive_token_repeats>().at_least(1).says(
          "a run of this many equal ids ends the rollout"),
      guard.of<&RepeatGuardSettings::ngram_size>().at_least(1).says(
          "length of a repeated block in ids"),
      guard.of<&RepeatGuardSettings::ngram_repeats>().at_least(2).says(
          "consecutive equal blocks that end the rollout"),
      guard.of<&RepeatGuardSettings::max_object_keys>().null_by_default().at_least(1).says(
          "number of complete `object_` keys (`bbox_2d` in formats with digits) that ends the "
          "rollout; null: no limit"),
  };
}

std::vector<KeySpec> matching_keys() {
  const KeysOf key(path(""), part<&Settings::match>);
  const KeysOf target(path(""), part<&Settings::target>);
  return {
      key("match_policy", &MatchSettings::policy)
          .one_of(match_policies().names())
          .says("rule that pairs predictions with ground truths: " + match_policies().meanings()),
      key.of<&MatchSettings::label_match>().says(
          "comparison of labels in scores: `exact` (as the tokenizer writes them), "
          "`normalized` (case, white space, NFKC), or the path of a JSON file of synonyms"),
      key.of<&MatchSettings::candidate_top_k>().at_least(1).says(
          "most candidate ground truths per prediction"),
      key.of<&MatchSettings::maskiou_gate>().within(0, 1).says(
          "pairs with a lower maskIoU are rejected"),
      key.of<&MatchSettings::maskiou_resolution>().within(1, 4096).says(
          "side of the maskIoU canvas in pixels"),
      key.of<&MatchSettings::fp_cost>().within(0, 1e6).says("cost of an unmatched prediction"),
      key.of<&MatchSettings::fn_cost>().within(0, 1e6).says("cost of an unmatched ground truth"),
      target("target_policy", &TargetSettings::policy)
          .one_of(target_policies().names())
          .says("what a segment teaches: " + target_policies().meanings()),
      target.of<&TargetSettings::rewrite_order>().null_by_default().says(
          "`rewrite`: entries in the order of the ground truth (`truth`), or matched ones in that "
          "of the rollout, then the others (`rollout`), or each inserted by `object_ordering: own` "
          "(`own`); null: `rollout` with `object_ordering: random`, else `truth`"),
      target.of<&TargetSettings::incomplete_rollouts>().says(
          "`rewrite`: keep the valid objects of an incomplete rollout, or none of them"),
      target.of<&TargetSettings::rollout_share>().within(0, 1).above(0).says(
          "share of the windows with rollouts; the others teach the full ground truth"),
      target.of<&TargetSettings::ot_cost>().says(
          "distance between points in the optimal transport"),
      target.of<&TargetSettings::ot_epsilon>().within(1e-3, 1e6).says(
          "entropic regularization of the optimal transport, in bins"),
      target.of<&TargetSettings::ot_iters>().within(1, 1e6).says("Sinkhorn iterations"),
  };
}

std::vector<KeySpec> window_keys() {
  const KeysOf all(path(""), part<>);
  const KeysOf pack(path(""), part<&Settings::pack>);
  const KeysOf buffer(path("rollout_buffer."), part<&Settings::rollout_buffer>);
  const KeysOf offload(path("offload."), part<&Settings::offload>);
  return {
      pack("packing_selector", &PackSettings::selector)
          .or_else("set `training.packing: false`")
          .says("rule that chooses the segments of a row"),
      pack("post_rollout_pack_scope", &PackSettings::scope)
          .says("one row per micro-batch with a carry buffer, or the whole window at once"),
      all.of<&Settings::loss_normalization>().says(
          "mean over the window's tokens, or mean of row means"),
      buffer.of<&RolloutBufferSettings::enabled>().in(kStage2).says(
          "uses a window for several optimizer steps"),
      buffer.of<&RolloutBufferSettings::m_steps>().within(1, 1e6).says(
          "optimizer steps per window"),
      offload.of<&OffloadSettings::enabled>().says(
          "moves training state to host memory around vLLM rollouts"),
      offload("offload_model", &OffloadSettings::model)
          .says("moves the parameters, if offload is enabled"),
      offload("offload_optimizer", &OffloadSettings::optimizer)
          .says("moves the optimizer state, if offload is enabled"),
  };
}

}  // namespace

std::vector<KeySpec> rollout_keys() {
  return join_keys({generation_keys(), repeat_guard_keys(), matching_keys(), coord_loss_overrides(),
                    window_keys()});
}

std::vector<KeySpec> monitor_keys() {
  const KeysOf monitor(path("monitor_dump."), part<&Settings::monitor>);
  return {
      monitor.of<&MonitorSettings::enabled>().says(
          "dumps pictures of the rollouts and matches of some steps (stage 2)"),
      monitor.of<&MonitorSettings::every_steps>().at_least(1).says(
          "steps between dumps; null: logging_steps"),
      monitor.of<&MonitorSettings::dump_first_step>().says("dumps step 1 too"),
      monitor.of<&MonitorSettings::max_events>().at_least(0).says(
          "maximum number of dumps per run"),
      monitor.of<&MonitorSettings::max_samples>().at_least(1).says(
          "maximum number of samples per dump"),
      monitor.of<&MonitorSettings::max_text_chars>().at_least(1).says("maximum bytes of a text"),
      monitor.of<&MonitorSettings::out_dir>().says(
          "directory of the dumps; null: `monitor` in the run directory"),
      monitor.of<&MonitorSettings::write_markdown>().says("also writes the texts as Markdown"),
  };
}

}  // namespace rematch
