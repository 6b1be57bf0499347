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
      all("rollout_backend", &Settings::backend,
          "backend that generates rollouts: " + rollout_backends().meanings())
          .one_of(rollout_backends().names()),
      key("rollout_generate_batch_size", &GenerationSettings::batch_size,
          "samples per generate call of one rank (`hf`)")
          .within(1, 1e6),
      native.of<&NativeSettings::max_num_seqs>("most concurrent sequences of the `native` backend")
          .within(1, 1e6),
      native.of<&NativeSettings::kv_cache_gib>("GiB of the `native` backend's key/value cache")
          .null_by_default()
          .above(0)
          .up_to(1e6)
          .null_is({"auto"}),
      text_key(path("decode_mode"), "greedy")
          .one_of({"greedy"})
          .refuses("=beam", "beam search is not supported: set `decode_mode: greedy`")
          .says("only `greedy`; `temperature` above 0 turns on sampling"),
      key.of<&GenerationSettings::max_new_tokens>("most tokens in a rollout").within(1, 1 << 24),
      key.of<&GenerationSettings::temperature>("0 is greedy").within(0, 1000),
      key.of<&GenerationSettings::top_p>("nucleus sampling; 1 is off").within(0, 1).above(0),
      key.of<&GenerationSettings::top_k>(
             "samples from the k most likely tokens; off, 0 and -1: from all")
          .null_by_default()
          .at_least(-1)
          .null_is({"off"}),
      key.of<&GenerationSettings::repetition_penalty>(
             "penalty on tokens of the prompt and the answer, as in transformers; 1 is off")
          .within(1e-3, 1e3),
  };
}

std::vector<KeySpec> repeat_guard_keys() {
  const KeysOf guard(path("repeat_terminate."),
                     part<&Settings::generation, &GenerationSettings::repeat_terminate>);
  return {
      guard.of<&RepeatGuardSettings::enabled>("ends rollouts that repeat themselves"),
      guard
          .of<&RepeatGuardSettings::min_new_tokens>(
              "the guard starts at this many generated tokens")
          .at_least(0),
      guard
          .of<&RepeatGuardSettings::max_consecutive_token_repeats>(
              "a run of this many equal ids ends the rollout")
          .at_least(1),
      guard.of<&RepeatGuardSettings::ngram_size>("length of a repeated block in ids").at_least(1),
      guard.of<&RepeatGuardSettings::ngram_repeats>("consecutive equal blocks that end the rollout")
          .at_least(2),
      guard
          .of<&RepeatGuardSettings::max_object_keys>(
              "complete `object_` keys (`bbox_2d` in formats with digits) that end the rollout; "
              "null: no limit")
          .null_by_default()
          .at_least(1),
  };
}

std::vector<KeySpec> matching_keys() {
  const KeysOf key(path(""), part<&Settings::match>);
  const KeysOf target(path(""), part<&Settings::target>);
  return {
      key("match_policy", &MatchSettings::policy,
          "rule that pairs predictions with ground truths: " + match_policies().meanings())
          .one_of(match_policies().names()),
      key.of<&MatchSettings::label_match>(
          "comparison of labels in scores: `exact` (as the tokenizer writes them), "
          "`normalized` (case, white space, NFKC), or the path of a JSON file of synonyms"),
      key.of<&MatchSettings::candidate_top_k>("most candidate ground truths per prediction")
          .at_least(1),
      key.of<&MatchSettings::maskiou_gate>("pairs with a lower maskIoU are rejected").within(0, 1),
      key.of<&MatchSettings::maskiou_resolution>("side of the maskIoU canvas in pixels")
          .within(1, 4096),
      key.of<&MatchSettings::fp_cost>("cost of an unmatched prediction").within(0, 1e6),
      key.of<&MatchSettings::fn_cost>("cost of an unmatched ground truth").within(0, 1e6),
      target("target_policy", &TargetSettings::policy,
             "what a segment teaches: " + target_policies().meanings())
          .one_of(target_policies().names()),
      target
          .of<&TargetSettings::rewrite_order>(
              "`rewrite`: entries in the order of the ground truth (`truth`), or matched ones in "
              "that of the rollout, then the others (`rollout`), or each inserted by "
              "`object_ordering: own` (`own`); null: `rollout` with `object_ordering: random`, "
              "else `truth`")
          .null_by_default(),
      target.of<&TargetSettings::incomplete_rollouts>(
          "`rewrite`: keep the valid objects of an incomplete rollout, or none of them"),
      target
          .of<&TargetSettings::rollout_share>(
              "share of the windows with rollouts; the others teach the full ground truth")
          .within(0, 1)
          .above(0),
      target.of<&TargetSettings::ot_cost>("distance between points in the optimal transport"),
      target
          .of<&TargetSettings::ot_epsilon>(
              "entropic regularization of the optimal transport, in bins")
          .within(1e-3, 1e6),
      target.of<&TargetSettings::ot_iters>("Sinkhorn iterations").within(1, 1e6),
  };
}

std::vector<KeySpec> window_keys() {
  const KeysOf all(path(""), part<>);
  const KeysOf pack(path(""), part<&Settings::pack>);
  const KeysOf buffer(path("rollout_buffer."), part<&Settings::rollout_buffer>);
  const KeysOf offload(path("offload."), part<&Settings::offload>);
  return {
      pack("packing_selector", &PackSettings::selector, "rule that chooses the segments of a row")
          .or_else("set `training.packing: false`"),
      pack("post_rollout_pack_scope", &PackSettings::scope,
           "one row per micro-batch with a carry buffer, or the whole window at once"),
      all.of<&Settings::loss_normalization>("mean over the window's tokens, or mean of row means"),
      buffer.of<&RolloutBufferSettings::enabled>("uses a window for several optimizer steps")
          .in(kStage2),
      buffer.of<&RolloutBufferSettings::m_steps>("optimizer steps per window").within(1, 1e6),
      offload.of<&OffloadSettings::enabled>(
          "moves training state to host memory around vLLM rollouts"),
      offload("offload_model", &OffloadSettings::model,
              "moves the parameters, if offload is enabled"),
      offload("offload_optimizer", &OffloadSettings::optimizer,
              "moves the optimizer state, if offload is enabled"),
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
      monitor.of<&MonitorSettings::enabled>(
          "dumps pictures of the rollouts and matches of some steps (stage 2)"),
      monitor.of<&MonitorSettings::every_steps>("steps between dumps; null: logging_steps")
          .at_least(1),
      monitor.of<&MonitorSettings::dump_first_step>("dumps step 1 too"),
      monitor.of<&MonitorSettings::max_events>("most dumps per run").at_least(0),
      monitor.of<&MonitorSettings::max_samples>("most samples per dump").at_least(1),
      monitor.of<&MonitorSettings::max_text_chars>("most bytes of a text").at_least(1),
      monitor.of<&MonitorSettings::out_dir>(
          "directory of the dumps; null: `monitor` in the run directory"),
      monitor.of<&MonitorSettings::write_markdown>("also writes the texts as Markdown"),
  };
}

}  // namespace rematch
