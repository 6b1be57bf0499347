#include "program/config/schema.h"

#include <set>

#include "base/file.h"
#include "config/config_page.h"
#include "config/support.h"

namespace rematch {

using test::config_markdown;
using test::Fate;
using test::fate;
using test::stage2;

TEST(Schema, EveryKeyExplainsItself) {
  for (const KeySpec& spec : schema()) {
    const std::string& text = spec.state == KeyState::kHonoured ? spec.help : spec.note;
    EXPECT_GT(text.size(), 8u) << spec.path;
    EXPECT_EQ(text.find('\n'), std::string::npos) << spec.path;
  }
}

TEST(Schema, EveryDefaultIsLegal) {
  const ConfigResult result = test::load_set({});
  EXPECT_TRUE(result.warnings.empty());
  for (const KeySpec& spec : schema()) {
    if (spec.state != KeyState::kHonoured || is_null(spec.fallback)) continue;
    // Settings of an adapter have no effect without one, and say so when they are typed.
    std::vector<std::string> settings{spec.path + "=" + yaml_text(spec.fallback)};
    if (spec.path.starts_with("tuner.") && spec.path != "tuner.train_type")
      settings.push_back("tuner.train_type=lora");
    EXPECT_TRUE(test::load_set(settings).warnings.empty()) << spec.path;
  }
}

// spec: buffer-01 offload-01
TEST(Schema, HasEveryKeyOfTheContract) {
  const std::vector<std::string> keys = {"global_max_length",
                                         "model.model",
                                         "model.torch_dtype",
                                         "template.max_length",
                                         "template.system",
                                         "template.truncation_strategy",
                                         "template.image_resize",
                                         "template.image_backend",
                                         "template.min_pixels",
                                         "template.max_pixels",
                                         "data.dataloader_num_workers",
                                         "data.dataloader_prefetch_factor",
                                         "tuner.train_type",
                                         "custom.train_jsonl",
                                         "custom.val_jsonl",
                                         "custom.train_sample_limit",
                                         "custom.val_sample_limit",
                                         "custom.object_ordering",
                                         "custom.user_prompt",
                                         "custom.emit_norm",
                                         "custom.json_format",
                                         "custom.coord_tokens.enabled",
                                         "custom.trainer_variant",
                                         "debug.enabled",
                                         "debug.output_dir",
                                         "debug.train_sample_limit",
                                         "debug.val_sample_limit"};
  for (const std::string& key : keys) EXPECT_NE(find_key(key), nullptr) << key;
  for (const char* key : {"output_dir",
                          "run_name",
                          "num_train_epochs",
                          "max_steps",
                          "per_device_train_batch_size",
                          "per_device_eval_batch_size",
                          "effective_batch_size",
                          "gradient_accumulation_steps",
                          "learning_rate",
                          "vit_lr",
                          "aligner_lr",
                          "weight_decay",
                          "adam_beta1",
                          "adam_beta2",
                          "adam_epsilon",
                          "max_grad_norm",
                          "warmup_ratio",
                          "warmup_steps",
                          "lr_scheduler_type",
                          "seed",
                          "logging_steps",
                          "logging_first_step",
                          "eval_strategy",
                          "eval_steps",
                          "save_strategy",
                          "save_steps",
                          "save_total_limit",
                          "save_only_model",
                          "metric_for_best_model",
                          "greater_is_better",
                          "resume_from_checkpoint",
                          "report_to",
                          "gradient_checkpointing",
                          "dataloader_drop_last",
                          "packing",
                          "packing_buffer",
                          "packing_min_fill_ratio",
                          "packing_drop_last",
                          "bf16",
                          "fp16",
                          "optimizer",
                          "add_version",
                          "logging_dir",
                          "save_safetensors",
                          "save_last_epoch",
                          "save_delay_steps",
                          "save_delay_epochs",
                          "eval_packing"}) {
    EXPECT_NE(find_key(std::string("training.") + key), nullptr) << key;
  }
  for (const char* key : {"enabled", "soft_ce_weight", "w1_weight", "gate_weight", "temperature",
                          "target_sigma", "target_truncate"}) {
    EXPECT_NE(find_key(std::string("custom.coord_soft_ce_w1.") + key), nullptr) << key;
  }
  for (const char* key :
       {"train_type", "freeze_llm", "freeze_vit", "freeze_aligner", "lora_rank", "lora_alpha",
        "lora_dropout", "use_dora", "target_modules", "target_regex", "modules_to_save",
        "trainable_token_indices", "lora_bias", "use_swift_lora"}) {
    EXPECT_NE(find_key(std::string("tuner.") + key), nullptr) << key;
  }
  for (const char* key : {"rollout_backend",
                          "rollout_generate_batch_size",
                          "native.max_num_seqs",
                          "native.kv_cache_gib",
                          "decode_mode",
                          "max_new_tokens",
                          "temperature",
                          "top_p",
                          "top_k",
                          "repetition_penalty",
                          "repeat_terminate.enabled",
                          "repeat_terminate.min_new_tokens",
                          "repeat_terminate.max_consecutive_token_repeats",
                          "repeat_terminate.ngram_size",
                          "repeat_terminate.ngram_repeats",
                          "repeat_terminate.max_object_keys",
                          "candidate_top_k",
                          "maskiou_gate",
                          "maskiou_resolution",
                          "fp_cost",
                          "fn_cost",
                          "ot_cost",
                          "ot_epsilon",
                          "ot_iters",
                          "target_sigma",
                          "target_truncate",
                          "temperature_coord",
                          "soft_ce_weight",
                          "w1_weight",
                          "gate_weight",
                          "match_policy",
                          "target_policy",
                          "rewrite_order",
                          "incomplete_rollouts",
                          "rollout_share",
                          "label_match",
                          "packing_selector",
                          "post_rollout_pack_scope",
                          "loss_normalization",
                          "rollout_buffer.enabled",
                          "rollout_buffer.m_steps",
                          "offload.enabled",
                          "offload.offload_model",
                          "offload.offload_optimizer",
                          "vllm.tensor_parallel_size",
                          "vllm.gpu_memory_utilization",
                          "vllm.max_model_len",
                          "vllm.enable_lora",
                          "vllm.enable_prefix_caching",
                          "vllm.sleep_level",
                          "vllm.enforce_eager",
                          "vllm.max_num_seqs",
                          "vllm.max_num_batched_tokens",
                          "vllm.kv_cache_dtype",
                          "vllm.infer_batch_size",
                          "vllm.python",
                          "vllm.mode",
                          "monitor_dump.enabled",
                          "monitor_dump.every_steps",
                          "monitor_dump.dump_first_step",
                          "monitor_dump.max_events",
                          "monitor_dump.max_samples",
                          "monitor_dump.max_text_chars",
                          "monitor_dump.out_dir",
                          "monitor_dump.write_markdown"}) {
    EXPECT_NE(find_key(stage2(key)), nullptr) << key;
  }
}

// spec: microbatch-02 vllm-08 buffer-01 offload-01
TEST(Schema, DefaultsAreTheContracts) {
  const Settings settings =
      test::load_set({"custom.trainer_variant=rollout_matching_sft"}).settings;
  EXPECT_EQ(settings.backend, "vllm");
  EXPECT_EQ(settings.generation.batch_size, 1);
  EXPECT_EQ(settings.generation.native.max_num_seqs, 64);
  EXPECT_EQ(settings.generation.max_new_tokens, 512);
  EXPECT_EQ(settings.generation.temperature, 0);
  EXPECT_EQ(settings.generation.repetition_penalty, 1);
  EXPECT_FALSE(settings.generation.repeat_terminate.enabled);
  EXPECT_EQ(settings.generation.repeat_terminate.min_new_tokens, 256);
  EXPECT_EQ(settings.generation.repeat_terminate.ngram_repeats, 2);
  EXPECT_EQ(settings.match.candidate_top_k, 10);
  EXPECT_EQ(settings.match.maskiou_gate, 0.3);
  EXPECT_EQ(settings.match.maskiou_resolution, 256);
  EXPECT_EQ(settings.target.ot_cost, OtCost::kL2);
  EXPECT_EQ(settings.target.ot_epsilon, 10);
  EXPECT_EQ(settings.target.ot_iters, 30);
  EXPECT_EQ(settings.match.policy, "maskiou");
  EXPECT_EQ(settings.match.label_match, "normalized");
  EXPECT_EQ(settings.target.policy, "append");
  EXPECT_EQ(settings.target.rewrite_order, RewriteOrder::kTruth);
  EXPECT_EQ(settings.target.incomplete_rollouts, IncompleteRollouts::kKeep);
  EXPECT_EQ(settings.target.rollout_share, 1);
  EXPECT_EQ(settings.data.coord_input_noise, 0);
  EXPECT_EQ(settings.losses.at("target_sigma"), 2);
  EXPECT_EQ(settings.pack.selector, PackingSelector::kBinpacking);
  EXPECT_EQ(settings.pack.scope, PackScope::kCarry);
  EXPECT_EQ(settings.loss_normalization, LossNormalization::kWindow);
  EXPECT_EQ(settings.pack.buffer, 512);
  EXPECT_EQ(settings.pack.min_fill_ratio, 0.65);
  EXPECT_FALSE(settings.rollout_buffer.enabled);
  EXPECT_EQ(settings.rollout_buffer.m_steps, 1);
  EXPECT_FALSE(settings.offload.enabled || settings.offload.model || settings.offload.optimizer);
  EXPECT_EQ(settings.vllm.tensor_parallel_size, 4);
  EXPECT_EQ(settings.loader.num_workers, 2);
  EXPECT_EQ(settings.loader.prefetch_factor, 2);
  EXPECT_EQ(settings.evaluation.metric_for_best_model, "eval_rollout_f1");
}

TEST(Capabilities, KeysOfWhatIsNotBuiltAreRefusedByName) {
  for (const auto& [assignment, name] : std::vector<std::pair<std::string, std::string>>{
           {stage2("decode_mode=beam"), "beam search"},
           {"custom.coord_offset={enabled: true}", "the coordinate-offset adapter"},
           {"training.optimizer=multimodal_coord_offset", "the coordinate-offset adapter"}}) {
    const Problem problem = test::problem_of_set({assignment});
    EXPECT_NE(problem.fix.find(name), std::string::npos) << problem.fix;
    EXPECT_NE(problem.fix.find("not supported: set"), std::string::npos) << problem.fix;
  }
}

// spec: vllm-03
TEST(Capabilities, TheirOffValuesAreFine) {
  for (const std::string& assignment :
       {std::string("training.packing=false"),
        stage2("rollout_buffer={enabled: false, m_steps: 1}"),
        stage2("offload={enabled: false, offload_model: true}"),
        std::string("training.resume_from_checkpoint=null"),
        std::string("training.resume_from_checkpoint=false"), std::string("tuner.train_type=full"),
        std::string("tuner.use_dora=false"), stage2("monitor_dump.enabled=false"),
        std::string("training.gradient_checkpointing=false"), stage2("decode_mode=greedy"),
        std::string("training.optimizer=multimodal"), std::string("training.optimizer=adamw_torch"),
        stage2("packing_selector=optimal"), stage2("post_rollout_pack_scope=window"),
        stage2("rollout_backend=hf"), stage2("rollout_backend=vllm")}) {
    EXPECT_EQ(fate(assignment), Fate::kSilent) << assignment;
  }
}

TEST(Docs, TheCommittedPageIsTheTable) {
  const std::string path = test::source_path("docs/config.md");
  if (std::getenv("REMATCH_UPDATE_DOCS")) write_file_atomic(path, config_markdown());
  EXPECT_EQ(read_file(path), config_markdown())
      << "regenerate with: REMATCH_UPDATE_DOCS=1 config_test --gtest_filter='Docs.*'";
}

TEST(Docs, EveryKeyHasItsRow) {
  const std::string page = config_markdown();
  for (const KeySpec& spec : schema()) {
    const std::string last = spec.path.substr(spec.path.rfind('.') + 1);
    EXPECT_NE(page.find(last + "`"), std::string::npos) << spec.path;
  }
}

}  // namespace rematch
