#include <gtest/gtest.h>

#include "model/families/family.h"
#include "model/tiny_checkpoint.h"
#include "support/capture.h"

namespace rematch {
namespace {

using Axes = std::vector<int64_t>;

ModelDescription with(const std::function<void(Json&)>& change) {
  return test::described_with(test::tiny_tied(), change);
}
Problem refusal(const std::function<void(Json&)>& change) {
  return test::refusal_of(test::tiny_tied(), change);
}

TEST(Qwen3VLFamily, ReadsTheNewSpelling) {
  const ModelDescription config = with([](Json&) {});
  EXPECT_EQ(config.text.rope.theta, 5000000.0);
  EXPECT_EQ(config.text.rope.axis_of_pair, (Axes{0, 1, 2, 0, 1, 2, 0, 0}));
  EXPECT_EQ(config.text.head_dim, 16);
  EXPECT_EQ(config.text.pad_token_id, 360);
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_EQ(config.image_token_id, 366);
  ASSERT_EQ(config.vision.blocks.size(), 3u);
  EXPECT_EQ(config.vision.blocks[0].deepstack_merger, 0);
  EXPECT_EQ(config.vision.blocks[1].deepstack_merger, -1);
  EXPECT_EQ(config.vision.blocks[2].deepstack_merger, 1);
  EXPECT_EQ(config.vision.rope_theta, 10000.0);
}

TEST(Qwen3VLFamily, ReadsTheOldSpelling) {
  const ModelDescription config = with([](Json& root) {
    Json& text = root["text_config"];
    text.erase("rope_parameters");
    text["rope_scaling"] =
        Json::parse(R"({"mrope_interleaved":true,"mrope_section":[3,3,2],"rope_type":"default"})");
    text["rope_theta"] = 1234;
    root["vision_config"].erase("rope_parameters");
    root["vision_config"]["model_type"] = "qwen3_vl";
  });
  EXPECT_EQ(config.text.rope.theta, 1234.0);
  EXPECT_EQ(config.text.rope.axis_of_pair, (Axes{0, 1, 2, 0, 1, 2, 0, 1}));
  EXPECT_EQ(config.vision.rope_theta, 10000.0);
}

TEST(Qwen3VLFamily, RopeScalingReplacesRopeParametersEntirely) {
  const ModelDescription config = with([](Json& root) {
    root["text_config"]["rope_scaling"] = Json::parse(R"({"type":"default"})");
  });
  EXPECT_EQ(config.text.rope.theta, 500000.0);
  EXPECT_EQ(config.text.rope.axis_of_pair, (Axes{0, 1, 2, 0, 1, 2, 0, 1}));
  EXPECT_EQ(with([](Json& root) {
              root["text_config"]["rope_scaling"] = Json::object();
            }).text.rope.theta,
            5000000.0);
  EXPECT_EQ(with([](Json& root) { root["text_config"]["rope_scaling"] = nullptr; }).text.rope.theta,
            5000000.0);
}

TEST(Qwen3VLFamily, RefusesMoreLayersThanAnyModelHas) {
  const Problem text =
      refusal([](Json& root) { root["text_config"]["num_hidden_layers"] = 1000000000; });
  EXPECT_NE(text.error.find("num_hidden_layers"), std::string::npos);
  const Problem vision = refusal([](Json& root) { root["vision_config"]["depth"] = 1000000000; });
  EXPECT_NE(vision.error.find("depth"), std::string::npos);
  const Problem taps = refusal([](Json& root) {
    root["vision_config"]["deepstack_visual_indexes"] = std::vector<int>(1000, 0);
  });
  EXPECT_NE(taps.error.find("deepstack_visual_indexes"), std::string::npos);
}

/// Numbers that no model has, in each place of config.json that a family reads.
void expect_bounds(const std::string& checkpoint, const char* tower,
                   const std::vector<const char*>& keys) {
  for (const char* key : keys) {
    for (const Json& huge : {Json(100'000'000), Json(1'000'000'000), Json(2'147'483'647)}) {
      const Problem problem = test::refusal_of(checkpoint, [&](Json& root) {
        Json& place = *tower == '\0' ? root : root[tower];
        place[key] = place[key].is_array() ? Json::array({huge}) : huge;
      });
      EXPECT_NE(problem.error.find(key), std::string::npos) << problem.error;
      EXPECT_NE(problem.what.find("to "), std::string::npos) << "the range: " << problem.what;
    }
  }
}

TEST(EveryFamily, RefusesNumbersBeyondAnyModelBeforeAnythingIsAllocated) {
  const std::vector<const char*> text{
      "vocab_size",          "hidden_size",         "intermediate_size", "num_hidden_layers",
      "num_attention_heads", "num_key_value_heads", "head_dim"};
  for (const std::string& checkpoint : {test::tiny_tied(), test::windows_tied()}) {
    expect_bounds(checkpoint, "text_config", text);
    expect_bounds(checkpoint, "vision_config",
                  {"hidden_size", "intermediate_size", "depth", "num_heads", "in_channels",
                   "patch_size", "temporal_patch_size", "spatial_merge_size", "out_hidden_size"});
    expect_bounds(checkpoint, "", {"image_token_id"});
    for (const auto& [key, huge] :
         {std::pair("rms_norm_eps", 1e9), std::pair("rope_theta", 1e30)}) {
      const Problem problem = test::refusal_of(checkpoint, [&](Json& root) {
        Json& place = root["text_config"];
        (std::string(key) == "rope_theta" && place.contains("rope_parameters")
             ? place["rope_parameters"]
             : place)[key] = huge;
      });
      EXPECT_NE(problem.error.find(key), std::string::npos) << problem.error;
    }
  }
  expect_bounds(test::tiny_tied(), "vision_config",
                {"num_position_embeddings", "deepstack_visual_indexes"});
  expect_bounds(test::windows_tied(), "vision_config", {"window_size", "fullatt_block_indexes"});
}

TEST(Qwen3VLFamily, InterleavesTheAxesAsFarAsTheSectionsReach) {
  const ModelDescription config =
      with([](Json& root) { root["text_config"]["rope_parameters"]["mrope_section"] = {9, 2, 1}; });
  EXPECT_EQ(config.text.rope.axis_of_pair, (Axes{0, 1, 2, 0, 1, 0, 0, 0}));
}

TEST(Qwen3VLFamily, TheMergersAreTheAlignerAndTheRestOfVisualIsTheVit) {
  const ParameterParts part_of = with([](Json&) {}).part_of;
  EXPECT_EQ(part_of("model.visual.merger.linear_fc1.weight"), ParameterPart::kAligner);
  EXPECT_EQ(part_of("model.visual.deepstack_merger_list.2.norm.bias"), ParameterPart::kAligner);
  EXPECT_EQ(part_of("model.visual.blocks.3.attn.qkv.weight"), ParameterPart::kVit);
  EXPECT_EQ(part_of("model.visual.blocks.3.attn.qkv.lora_A.weight"), ParameterPart::kVit);
  EXPECT_EQ(part_of("model.visual.pos_embed.weight"), ParameterPart::kVit);
  EXPECT_EQ(part_of("model.visualise.weight"), ParameterPart::kLlm);
  EXPECT_EQ(part_of("model.language_model.norm.weight"), ParameterPart::kLlm);
  EXPECT_EQ(part_of("lm_head.weight"), ParameterPart::kLlm);
}

TEST(Qwen3VLFamily, AnInnerThetaTakesPrecedence) {
  EXPECT_EQ(with([](Json& root) { root["text_config"]["rope_theta"] = 7; }).text.rope.theta,
            5000000.0);
}

TEST(Qwen3VLFamily, AbsentKeysTakeTheClassDefaults) {
  const ModelDescription config = with([](Json& root) {
    for (const char* key : {"head_dim", "pad_token_id", "rms_norm_eps"})
      root["text_config"].erase(key);
    root.erase("tie_word_embeddings");
    root["text_config"]["tie_word_embeddings"] = true;
    root["text_config"]["num_key_value_heads"] = nullptr;
  });
  EXPECT_EQ(config.text.head_dim, 128);
  EXPECT_EQ(config.text.pad_token_id, -1);
  EXPECT_EQ(config.text.final_norm.eps, 1e-6);
  EXPECT_EQ(config.text.num_key_value_heads, 4);
  EXPECT_FALSE(config.tie_word_embeddings) << "only the top-level flag counts";
}

TEST(Qwen3VLFamily, RefusesRopeTypesByName) {
  for (const char* type : {"yarn", "mrope", "linear"}) {
    const Problem problem =
        refusal([&](Json& root) { root["text_config"]["rope_parameters"]["rope_type"] = type; });
    EXPECT_NE(problem.what.find(type), std::string::npos);
  }
  EXPECT_NE(refusal([](Json& root) {
              root["text_config"]["rope_scaling"] = Json::parse(R"({"type":"dynamic"})");
            }).what.find("dynamic"),
            std::string::npos);
  EXPECT_EQ(with([](Json& root) {
              root["vision_config"]["rope_parameters"]["rope_type"] = "default";
            }).vision.rope_theta,
            10000.0);
  EXPECT_NE(refusal([](Json& root) {
              root["vision_config"]["rope_parameters"]["rope_type"] = "yarn";
            }).what.find("yarn"),
            std::string::npos);
}

TEST(Qwen3VLFamily, RefusesOtherModelTypes) {
  EXPECT_NE(refusal([](Json& root) { root["model_type"] = "qwen2_vl"; }).what.find("qwen2_vl"),
            std::string::npos);
  EXPECT_NE(
      refusal([](Json& root) { root["model_type"] = "qwen3_vl_moe"; }).fix.find("dense Qwen3-VL"),
      std::string::npos);
  EXPECT_NE(refusal([](Json& root) {
              root.erase("model_type");
              root.erase("architectures");
            }).what.find("absent"),
            std::string::npos);
}

TEST(Qwen3VLFamily, IsKnownByItsArchitectureWithoutAModelType) {
  EXPECT_EQ(with([](Json& root) {
              root.erase("model_type");
              root["architectures"] = {"Qwen3VLForConditionalGeneration"};
            }).image_token_id,
            366);
}

TEST(Qwen3VLFamily, RefusesWhatItDoesNotCompute) {
  EXPECT_NE(refusal([](Json& root) {
              root["text_config"]["attention_bias"] = true;
            }).error.find("attention_bias"),
            std::string::npos);
  EXPECT_NE(refusal([](Json& root) {
              root["text_config"]["hidden_act"] = "gelu";
            }).error.find("hidden_act"),
            std::string::npos);
  EXPECT_NE(refusal([](Json& root) {
              root["vision_config"]["hidden_act"] = "silu";
            }).error.find("hidden_act"),
            std::string::npos);
}

TEST(Qwen3VLFamily, RefusesDamagedValues) {
  const auto text = [](const char* key, Json value) {
    return refusal([&](Json& root) { root["text_config"][key] = value; }).error;
  };
  EXPECT_NE(text("hidden_size", 0).find("text_config.hidden_size"), std::string::npos);
  EXPECT_NE(text("hidden_size", "32").find("hidden_size"), std::string::npos);
  EXPECT_NE(text("num_hidden_layers", 1.5).find("num_hidden_layers"), std::string::npos);
  EXPECT_NE(text("num_hidden_layers", 99999999999).find("num_hidden_layers"), std::string::npos);
  EXPECT_NE(text("head_dim", 15).find("head_dim"), std::string::npos);
  EXPECT_NE(text("num_key_value_heads", 3).find("num_key_value_heads"), std::string::npos);
  EXPECT_NE(text("pad_token_id", 1368).find("pad_token_id"), std::string::npos);
  EXPECT_NE(text("rms_norm_eps", -1).find("rms_norm_eps"), std::string::npos);
  EXPECT_NE(refusal([](Json& root) {
              root["text_config"]["rope_parameters"]["mrope_section"] = {1, 2};
            }).error.find("mrope_section"),
            std::string::npos);
  EXPECT_NE(
      refusal([](Json& root) { root["vision_config"]["num_heads"] = 5; }).error.find("num_heads"),
      std::string::npos);
  EXPECT_NE(refusal([](Json& root) {
              root["vision_config"]["deepstack_visual_indexes"] = {3};
            }).error.find("deepstack"),
            std::string::npos);
  EXPECT_NE(refusal([](Json& root) {
              root["vision_config"]["out_hidden_size"] = 33;
            }).error.find("out_hidden_size"),
            std::string::npos);
  EXPECT_NE(refusal([](Json& root) {
              root["vision_config"]["patch_size"] = {16, 8};
            }).error.find("patch_size"),
            std::string::npos);
  EXPECT_NE(refusal([](Json& root) { root.erase("text_config"); }).error.find("text_config"),
            std::string::npos);
}

}  // namespace
}  // namespace rematch
