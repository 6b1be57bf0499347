#include "plan/models.h"

#include <fmt/core.h>

#include "support/capture.h"

namespace rematch::test {

std::string config_of(const PublicModel& model) {
  return fmt::format(
      R"({{"model_type": "qwen3_vl", "tie_word_embeddings": {}, "dtype": "bfloat16",
"text_config": {{"vocab_size": 151936, "hidden_size": {}, "intermediate_size": {},
"num_hidden_layers": {}, "num_attention_heads": {},
"num_key_value_heads": 8, "head_dim": 128}},
"vision_config": {{"depth": {}, "hidden_size": {}, "intermediate_size": {},
"num_heads": 16, "out_hidden_size": {},
"deepstack_visual_indexes": {}}}}})",
      model.is_tied, model.hidden, model.intermediate, model.num_layers, model.num_heads,
      model.vision_depth, model.vision_hidden, model.vision_intermediate, model.hidden, model.taps);
}

PlanRequest request_of(const PublicModel& model, double gpu_gib) {
  TempDir dir;
  dir.write("config.json", config_of(model));
  PlanRequest request{.model = describe_model(dir.path())};
  request.device = {.on_gpu = true,
                    .memory_bytes = static_cast<int64_t>(gpu_gib * 1024 * 1024 * 1024)};
  request.batches.gradient_accumulation_steps = 16;
  request.backend = "native";
  return request;
}

PlanRequest eight_b(double gpu_gib) { return request_of(kPublicModels[2], gpu_gib); }

int64_t bytes_of(const MemoryPlan& plan, const std::string& phase, const std::string& name) {
  for (const auto& [found, bytes] : plan.phase(phase).bytes) {
    if (found == name) return bytes;
  }
  return 0;
}

}  // namespace rematch::test
