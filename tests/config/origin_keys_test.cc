#include <gtest/gtest.h>

#include "config/support.h"

namespace rematch {

using test::Fate;
using test::fate;
using test::stage2;

// ORIGIN_KEYS: the keys that users' files bring, and what happens to each.
TEST(OriginKeys, IgnoredKeysWarnOnceWithTheReason) {
  for (const std::string& assignment :
       {std::string("model.attn_impl=flash_attention_2"),
        std::string("data.dataset=[dummy]"),
        std::string("data.val_dataset=[dummy]"),
        std::string("data.dataset_num_proc=8"),
        std::string("data.dataloader_pin_memory=true"),
        std::string("data.dataloader_persistent_workers=true"),
        std::string("training.save_safetensors=true"),
        std::string("training.eval_packing=false"),
        std::string("tuner.use_swift_lora=false"),
        std::string("deepspeed={enabled: true, config: zero2}"),
        std::string("deepspeed=zero2"),
        std::string("training.deepspeed=zero1"),
        std::string("custom.coord_tokens.skip_bbox_norm=true"),
        std::string("custom.dump_conversation_text=false"),
        std::string("custom.dump_conversation_path=x"),
        std::string("custom.instability_monitor={enabled: true, a: {b: 1}}"),
        std::string("custom.log_file={enabled: true}"),
        std::string("custom.token_type_metrics={enabled: true}"),
        std::string("custom.val_sample_with_replacement=false"),
        std::string("custom.extra.rollout_backend_bench={steps: 3}"),
        stage2("desc_monitor={enabled: true, every: 5}"),
        std::string("template.truncation_strategy=right"),
        std::string("template.truncation_strategy=left"),
        std::string("training.report_to=swanlab"),
        std::string("training.report_to=[tensorboard, swanlab]")}) {
    const ConfigResult result = test::load_set({assignment});
    ASSERT_EQ(result.warnings.size(), 1u) << assignment;
    const std::string key = assignment.substr(0, assignment.find('='));
    EXPECT_NE(result.warnings[0].text.find(key), std::string::npos) << result.warnings[0].text;
    EXPECT_GT(result.warnings[0].text.size(), key.size() + 20)
        << "a reason is due: " << result.warnings[0].text;
    EXPECT_EQ(result.warnings[0].where, "--set " + key);
  }
}

// spec: vllm-06
TEST(OriginKeys, RefusedKeysSayWhatToUseInstead) {
  for (const auto& [assignment, advice] : std::vector<std::pair<std::string, std::string>>{
           {"training.packing_length=1024", "global_max_length"},
           {"training.packing_allow_single_long=true", "oversize"},
           {"training.fp16=true", "bf16"},
           {"model.torch_dtype=float16", "bfloat16"},
           {"tuner.lora_bias=all", "choose"},
           {"quantization={quant_method: bnb}", "torch_dtype"},
           {"rlhf={rlhf_type: grpo}", "trainer_variant"},
           {"custom.trainer_variant=gkd_monitor", "remove"},
           {"custom.visual_kd={enabled: true, weight: 0.1}", "remove"},
           {"custom.fusion_config=configs/fusion.yaml", "remove"},
           {"custom.augmentation={enabled: true}", "remove"},
           {"custom.augmentation_curriculum={phases: [1]}", "remove"},
           {"custom.bypass_prob=0.1", "remove"},
           {"custom.use_summary=true", "remove"},
           {"custom.hard_sample_mining={enabled: true}", "removed"},
           {"custom.coord_loss={weight: 1}", "coord_soft_ce_w1"},
           {"custom.sample_limit=5", "train_sample_limit"},
           {"custom.summary_ratio=0.5", "null or false"},
           {"custom.images_per_user_turn=2", "removed"},
           {"custom.coord_expectation_metrics={enabled: true}", "coord_soft_ce_w1"},
           {"custom.rollout_matching={max_new_tokens: 5}", "custom.extra.rollout_matching"},
           {"prompts={user: hello}", "template.system"},
           {stage2("vllm.mode=server"), "colocate"},
           {stage2("vllm.enable_lora=true"), "merged"},
           {"custom.val_sample_with_replacement=true", "false"}}) {
    const Problem problem = test::problem_of_set({assignment});
    EXPECT_NE(problem.error.find(assignment.substr(0, assignment.find('='))), std::string::npos)
        << problem.error;
    EXPECT_NE(problem.fix.find(advice), std::string::npos) << assignment << ": " << problem.fix;
  }
}

TEST(OriginKeys, KeysOfUnreleasedVersionsAreUnknown) {
  for (const std::string& key : {std::string("training.resume_optimizer_from"),
                                 std::string("custom.extra.rollout_matching.dedup_iou")}) {
    EXPECT_EQ(test::problem_of_set({key + "=1"}).error, "unknown key `" + key + "`");
  }
}

TEST(OriginKeys, RefusedKeysThatAreOffAreFine) {
  for (const char* assignment :
       {"custom.visual_kd={enabled: false, weight: 0.1}", "custom.visual_kd=null",
        "custom.fusion_config=null", "custom.augmentation={enabled: false}",
        "custom.augmentation_curriculum=null", "custom.bypass_prob=0", "custom.bypass_prob=0.0",
        "custom.use_summary=false", "training.fp16=false",
        "training.packing_allow_single_long=false", "training.packing_length=null", "prompts={}",
        "prompts=null", "quantization={quant_method: null}", "rlhf={}",
        "custom.coord_offset={enabled: false}", "deepspeed=null", "tuner.lora_bias=none"}) {
    EXPECT_EQ(fate(assignment), Fate::kSilent) << assignment;
  }
}

// spec: vllm-08
TEST(OriginKeys, EngineKeysAreHandedOverByTheirOwnNames) {
  const ConfigResult result = test::load_text(
      "custom:\n  extra:\n    rollout_matching:\n      vllm:\n        skip_mm_profiling: true\n    "
      "    mm_encoder_tp_mode: data\n"
      "        enable_chunked_prefill: false\n        disable_chunked_mm_input: true\n        "
      "max_num_batched_tokens: 4096\n        "
      "kv_cache_dtype: fp8\n"
      "        cpu_offload_gb: 1.5\n        swap_space: 2\n        load_format: dummy\n        "
      "disable_custom_all_reduce: true\n"
      "        limit_mm_per_prompt: {image: 1, video: 0}\n        mode: colocate\n");
  EXPECT_TRUE(result.warnings.empty());
  const auto& arguments = result.settings.vllm.engine_args;
  const auto value_of = [&](const std::string& name) {
    const auto found = std::find_if(arguments.begin(), arguments.end(),
                                    [&](const auto& pair) { return pair.first == name; });
    return found == arguments.end() ? std::string("(absent)") : found->second;
  };
  EXPECT_EQ(value_of("skip_mm_profiling"), "true");
  EXPECT_EQ(value_of("mm_encoder_tp_mode"), "\"data\"");
  EXPECT_EQ(value_of("max_num_batched_tokens"), "4096");
  EXPECT_EQ(value_of("cpu_offload_gb"), "1.5");
  EXPECT_EQ(value_of("enable_prefix_caching"), "true");
  EXPECT_EQ(value_of("mode"), "(absent)");
  for (const char* field :
       {"tensor_parallel_size", "limit_mm_per_prompt", "gpu_memory_utilization"})
    EXPECT_EQ(value_of(field), "(absent)");
  EXPECT_EQ(result.settings.vllm.max_images, 1);
  EXPECT_EQ(result.settings.vllm.gpu_memory_utilization, 0.45);
}

TEST(OriginKeys, AnUnknownEngineKeyIsNotHandedOver) {
  EXPECT_EQ(test::problem_of_set({stage2("vllm.made_up=1")}).error,
            "unknown key `custom.extra.rollout_matching.vllm.made_up`");
}

}  // namespace rematch
