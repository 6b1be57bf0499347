// Keys of custom.extra.rollout_matching (stage 2).
#include "config/schema.h"

namespace rematch {
namespace {

std::string key(const char* name) { return kRolloutMatching + "." + name; }

std::vector<KeySpec> generation_keys() {
  return {
      text_key(key("rollout_backend"), "vllm")
          .one_of({"vllm", "hf", "native"})
          .needs("=native", Capability::kNativeEngine)
          .says("which engine generates"),
      integer(key("rollout_generate_batch_size"), "1").at_least(1).says("samples of one generate call on one rank (`hf`)"),
      integer(key("native.max_num_seqs"), "64").at_least(1).says("live sequences of the `native` engine"),
      number(key("native.kv_cache_gib")).above(0).null_is({"auto"}).says("key-value cache of the `native` engine in GiB"),
      text_key(key("decode_mode"), "greedy")
          .one_of({"greedy", "beam"})
          .needs("=beam", Capability::kBeamSearch)
          .says("how the next token is chosen"),
      integer(key("max_new_tokens"), "512").at_least(1).says("tokens a rollout may have"),
      number(key("temperature"), "0").at_least(0).says("0 is greedy"),
      number(key("top_p"), "1").within(0, 1).above(0).says("nucleus sampling; 1 is off"),
      integer(key("top_k")).at_least(-1).null_is({"off"}).says("best k only; off, 0 and -1: all"),
      number(key("repetition_penalty"), "1").above(0).says("over prompt and generated ids, as transformers; 1 is off"),
      boolean(key("repeat_terminate.enabled"), "false").says("ends rollouts that repeat themselves"),
      integer(key("repeat_terminate.min_new_tokens"), "256").at_least(0).says("the guard looks from this many generated tokens on"),
      integer(key("repeat_terminate.max_consecutive_token_repeats"), "64").at_least(1).says("a run of equal ids this long ends the row"),
      integer(key("repeat_terminate.ngram_size"), "64").at_least(1).says("ids of a repeated block"),
      integer(key("repeat_terminate.ngram_repeats"), "2").at_least(2).says("equal blocks in a row that end it"),
      integer(key("repeat_terminate.max_object_keys")).at_least(1).says("completed `object_` keys that end it; null: no cap"),
  };
}

std::vector<KeySpec> matching_keys() {
  const std::string from = "stage 2's own; null: from `custom.coord_soft_ce_w1.";
  return {
      integer(key("candidate_top_k"), "10").at_least(1).says("ground truths looked at for each prediction"),
      number(key("maskiou_gate"), "0.3").within(0, 1).says("pairs below are rejected"),
      integer(key("maskiou_resolution"), "256").within(1, 4096).says("side of the canvas of maskIoU in pixels"),
      number(key("fp_cost"), "1").at_least(0).says("cost of an unmatched prediction"),
      number(key("fn_cost"), "1").at_least(0).says("cost of an unmatched ground truth"),
      text_key(key("ot_cost"), "l2").one_of({"l1", "l2"}).says("distance of the point transport"),
      number(key("ot_epsilon"), "10").above(0).says("entropy of the point transport in bins"),
      integer(key("ot_iters"), "30").at_least(1).says("Sinkhorn rounds"),
      number(key("target_sigma")).above(0).says(from + "target_sigma`"),
      number(key("target_truncate")).at_least(0).says(from + "target_truncate`"),
      number(key("temperature_coord")).above(0).says(from + "temperature`"),
      number(key("soft_ce_weight")).at_least(0).says(from + "soft_ce_weight`"),
      number(key("w1_weight")).at_least(0).says(from + "w1_weight`"),
      number(key("gate_weight")).at_least(0).says(from + "gate_weight`"),
      text_key(key("packing_selector"), "binpacking")
          .one_of({"binpacking", "optimal", "fifo"})
          .or_else("set `training.packing: false`")
          .says("how waiting segments are chosen for a row"),
      text_key(key("post_rollout_pack_scope"), "micro")
          .one_of({"micro", "window"})
          .says("one row a micro-batch with a carry, or the whole window at once"),
      text_key(key("loss_normalization"), "window").one_of({"window", "row"}).says("over the window's tokens, or mean of row means"),
      boolean(key("rollout_buffer.enabled"), "false").needs("on", Capability::kRolloutBuffer).says("reuses a window's rollouts"),
      integer(key("rollout_buffer.m_steps"), "1").at_least(1).needs(">1", Capability::kRolloutBuffer).says("optimizer steps on one window"),
      boolean(key("offload.enabled"), "false")
          .needs("on", Capability::kOffload)
          .says("moves training state to host memory around vLLM rollouts"),
      boolean(key("offload.offload_model"), "false").says("the parameters; used when offload is enabled"),
      boolean(key("offload.offload_optimizer"), "false").says("the optimizer state; used when offload is enabled"),
  };
}

std::vector<KeySpec> vllm_keys() {
  return {
      text_key(key("vllm.mode"), "colocate")
          .one_of({"colocate"})
          .refuses("=server", "a server is never used by this trainer: set `colocate`, or `rollout_backend: hf`")
          .says("only `colocate`"),
      integer(key("vllm.tensor_parallel_size"), "4").at_least(1).says("ranks that share one engine"),
      number(key("vllm.gpu_memory_utilization"), "0.45").within(0, 1).above(0).says("part of the GPU's memory the engine may take"),
      integer(key("vllm.max_model_len")).at_least(1).says("null: global_max_length; without that, what the data ask for"),
      boolean(key("vllm.enable_lora"), "false").refuses("on", "weights are always handed over merged: set false").says("only false"),
      boolean(key("vllm.enable_prefix_caching"), "true").says("handed to the engine"),
      integer(key("vllm.sleep_level"), "0").within(0, 2).says("handed to the engine; 2 has returned garbage after waking"),
      boolean(key("vllm.enforce_eager"), "false").says("handed to the engine; always on on a CPU"),
      integer(key("vllm.max_num_seqs"), "256").at_least(1).says("handed to the engine"),
      integer(key("vllm.max_num_batched_tokens")).at_least(1).says("handed to the engine"),
      text_key(key("vllm.kv_cache_dtype")).says("handed to the engine"),
      integer(key("vllm.limit_mm_per_prompt.image"), "1").at_least(1).says("handed to the engine"),
      integer(key("vllm.limit_mm_per_prompt.video"), "0").at_least(0).says("handed to the engine"),
      integer(key("vllm.infer_batch_size")).at_least(1).says("prompts of one call; null: all of the window"),
      text_key(key("vllm.python"), "python3").says("interpreter whose environment holds vLLM; python3: on PATH, else .venv-vllm"),
      boolean(key("vllm.skip_mm_profiling")).says("handed to the engine"),
      text_key(key("vllm.mm_encoder_tp_mode")).says("handed to the engine"),
      boolean(key("vllm.enable_chunked_prefill")).says("handed to the engine"),
      boolean(key("vllm.disable_chunked_mm_input")).says("handed to the engine"),
      number(key("vllm.cpu_offload_gb")).at_least(0).says("handed to the engine"),
      number(key("vllm.swap_space")).at_least(0).says("handed to the engine"),
      text_key(key("vllm.load_format")).says("handed to the engine, but for dummy"),
      boolean(key("vllm.disable_custom_all_reduce")).says("handed to the engine"),
  };
}

std::vector<KeySpec> monitor_keys() {
  return {
      boolean(key("monitor_dump.enabled"), "false")
          .needs("on", Capability::kMonitorDump)
          .says("writes rollouts and matches of some steps for reading"),
      integer(key("monitor_dump.every_steps")).at_least(1).says("steps between dumps; null: logging_steps"),
      boolean(key("monitor_dump.dump_first_step"), "false").says("dumps step 1 too"),
      integer(key("monitor_dump.max_events"), "20").at_least(0).says("dumps of a run"),
      integer(key("monitor_dump.max_samples"), "1").at_least(1).says("samples of a dump"),
      integer(key("monitor_dump.max_text_chars"), "4000").at_least(1).says("characters of a text"),
      text_key(key("monitor_dump.out_dir")).says("null: inside the run directory"),
      boolean(key("monitor_dump.write_markdown"), "true").says("a Markdown page beside the JSON"),
      ignored(key("desc_monitor"), "descriptions are not scored; `rematch rollout CONFIG` writes them for a look"),
  };
}

}  // namespace

std::vector<KeySpec> rollout_keys() {
  std::vector<KeySpec> keys;
  for (auto part : {generation_keys, matching_keys, vllm_keys, monitor_keys}) {
    for (KeySpec& spec : part()) keys.push_back(std::move(spec));
  }
  return keys;
}

}  // namespace rematch
