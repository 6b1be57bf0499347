#include <gtest/gtest.h>

#include "model/families/family.h"
#include "model/model.h"
#include "model/tiny_checkpoint.h"
#include "support/capture.h"

namespace rematch {
namespace {

using Axes = std::vector<int64_t>;

ModelDescription windows_with(const std::function<void(Json&)>& change) {
  return test::described_with(test::windows_tied(), change);
}
Problem windows_refusal(const std::function<void(Json&)>& change) {
  return test::refusal_of(test::windows_tied(), change);
}

}  // namespace

TEST(Qwen25VLFamily, ReadsTheNewSpelling) {
  const ModelDescription config = windows_with([](Json&) {});
  EXPECT_EQ(config.text.rope.theta, 1000000.0);
  EXPECT_EQ(config.text.rope.axis_of_pair, (Axes{0, 0, 1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(config.text.head_dim, 16);
  EXPECT_EQ(config.text.pad_token_id, -1);
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_TRUE(config.text.layers[0].attention()->q.has_bias);
  EXPECT_FALSE(config.text.layers[0].attention()->o.has_bias);
  ASSERT_EQ(config.vision.blocks.size(), 3u);
  EXPECT_EQ(config.vision.blocks[0].window, 4);
  EXPECT_EQ(config.vision.blocks[1].window, 0);
  EXPECT_EQ(config.vision.window(), 4);
  EXPECT_FALSE(config.vision.patch_embed.has_bias);
}

TEST(Qwen25VLFamily, RefusesMoreLayersThanAnyModelHas) {
  const Problem text =
      windows_refusal([](Json& root) { root["text_config"]["num_hidden_layers"] = 1000000000; });
  EXPECT_NE(text.error.find("num_hidden_layers"), std::string::npos);
  const Problem vision =
      windows_refusal([](Json& root) { root["vision_config"]["depth"] = 1000000000; });
  EXPECT_NE(vision.error.find("depth"), std::string::npos);
}

TEST(Qwen25VLFamily, ReadsTheFlatSpellingOfPublishedFiles) {
  const ModelDescription wanted = windows_with([](Json&) {});
  const ModelDescription found = windows_with([](Json& root) {
    const Json text = root["text_config"];
    root.erase("text_config");
    for (const auto& member : text.items()) {
      if (member.key() != "model_type" && member.key() != "rope_parameters")
        root[member.key()] = member.value();
    }
    root["rope_theta"] = 1000000;
    root["rope_scaling"] = Json::parse(R"({"type":"mrope","mrope_section":[2,3,3]})");
  });
  EXPECT_EQ(found.text.hidden_size, wanted.text.hidden_size);
  EXPECT_EQ(found.text.vocab_size, wanted.text.vocab_size);
  EXPECT_EQ(found.text.rope.axis_of_pair, wanted.text.rope.axis_of_pair);
  EXPECT_EQ(found.text.rope.theta, wanted.text.rope.theta);
  EXPECT_EQ(found.text.num_layers(), wanted.text.num_layers());
}

TEST(Qwen25VLFamily, TheTieFlagMayBeInTheTextTower) {
  const auto flag = [](bool top, bool text) {
    return windows_with([&](Json& root) {
             root["tie_word_embeddings"] = top;
             root["text_config"]["tie_word_embeddings"] = text;
           })
        .tie_word_embeddings;
  };
  EXPECT_TRUE(flag(false, true));
  EXPECT_TRUE(flag(true, false));
  EXPECT_FALSE(flag(false, false));
}

TEST(Qwen25VLFamily, TheMergerIsTheAlignerAndTheRestOfVisualIsTheVit) {
  const ParameterParts part_of = windows_with([](Json&) {}).part_of;
  EXPECT_EQ(part_of("model.visual.merger.mlp.0.weight"), ParameterPart::kAligner);
  EXPECT_EQ(part_of("model.visual.merger.ln_q.weight"), ParameterPart::kAligner);
  EXPECT_EQ(part_of("model.visual.blocks.3.mlp.gate_proj.lora_A.weight"), ParameterPart::kVit);
  EXPECT_EQ(part_of("model.language_model.layers.0.self_attn.q_proj.bias"), ParameterPart::kLlm);
}

TEST(Qwen25VLFamily, RefusesWhatItDoesNotComputeByName) {
  const auto text = [](const char* key, Json value) {
    return windows_refusal([&](Json& root) { root["text_config"][key] = value; }).error;
  };
  EXPECT_NE(text("use_sliding_window", true).find("use_sliding_window"), std::string::npos);
  EXPECT_NE(text("layer_types", {"full_attention", "sliding_attention"}).find("layer_types"),
            std::string::npos);
  EXPECT_NE(text("hidden_act", "gelu").find("hidden_act"), std::string::npos);
  EXPECT_NE(text("head_dim", 32).find("head_dim"), std::string::npos);
  EXPECT_NE(text("num_attention_heads", 5).find("num_attention_heads"), std::string::npos);
  EXPECT_NE(windows_refusal([](Json& root) {
              root["text_config"]["rope_parameters"]["rope_type"] = "yarn";
            }).what.find("yarn"),
            std::string::npos);
  EXPECT_NE(windows_refusal([](Json& root) {
              root["text_config"]["rope_parameters"]["mrope_section"] = {2, 3, 2};
            }).error.find("mrope_section"),
            std::string::npos);
  EXPECT_NE(windows_refusal([](Json& root) {
              root["vision_config"]["hidden_act"] = "gelu";
            }).error.find("hidden_act"),
            std::string::npos);
  EXPECT_NE(windows_refusal([](Json& root) {
              root["vision_config"]["window_size"] = 16;
            }).error.find("window_size"),
            std::string::npos);
  EXPECT_NE(windows_refusal([](Json& root) {
              root["vision_config"]["out_hidden_size"] = 16;
            }).error.find("out_hidden_size"),
            std::string::npos);
}

TEST(Qwen25VLFamily, ParametersHaveTheModulesNamesForAnyFileNames) {
  const auto model = Model::load(test::windows_tied(), {});
  EXPECT_TRUE(model->parameter("model.visual.merger.mlp.0.weight").defined());
  EXPECT_TRUE(model->parameter("model.language_model.layers.1.self_attn.k_proj.bias").defined());
  EXPECT_FALSE(model->parameter("model.embed_tokens.weight").defined());
  EXPECT_TRUE(model->unused_tensors().empty());
  const auto dir = HfDir::open(test::windows_tied(), model->description().file_names);
  EXPECT_EQ(dir->stored_name("model.language_model.norm.weight"), "model.norm.weight");
  EXPECT_EQ(dir->stored_name("lm_head.weight"), "lm_head.weight");
}

TEST(Qwen25VLFamily, AnImageDoesNotDependOnItsNeighbours) {
  const at::NoGradGuard no_grad;
  const auto model = Model::load(test::windows_untied(), {});
  const std::vector<GridThw> grids{{1, 6, 10}, {1, 2, 4}, {1, 6, 10}};
  at::manual_seed(1);
  const at::Tensor pixels = at::randn({60 + 8 + 60, model->description().vision.patch_width()});
  const at::Tensor together = model->encode_images({pixels, grids}).embeds_MH;
  const at::Tensor last = model->encode_images({pixels.slice(0, 68), {grids[2]}}).embeds_MH;
  EXPECT_LT((together.slice(0, 17) - last).abs().max().item<double>(),
            1e-5 * last.abs().max().item<double>());
}

}  // namespace rematch
