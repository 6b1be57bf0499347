#include "learn/mstep/optim/groups.h"

#include <gtest/gtest.h>

namespace rematch {
namespace {

const ParameterParts kParts{{{"model.visual.merger", ParameterPart::kAligner},
                             {"model.visual.deepstack_merger_list", ParameterPart::kAligner},
                             {"model.visual", ParameterPart::kVit}}};

std::vector<std::pair<std::string, at::Tensor>> parameters_of_all_parts() {
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  for (const char* name :
       {"model.language_model.embed_tokens.weight",
        "model.language_model.layers.0.input_layernorm.weight",
        "model.language_model.layers.0.self_attn.q_norm.weight",
        "model.language_model.layers.0.mlp.up_proj.weight", "lm_head.weight",
        "model.visual.patch_embed.proj.weight", "model.visual.patch_embed.proj.bias",
        "model.visual.blocks.0.norm1.weight", "model.visual.pos_embed.weight",
        "model.visual.merger.norm.weight", "model.visual.merger.linear_fc1.weight",
        "model.visual.deepstack_merger_list.0.linear_fc1.bias"}) {
    parameters.emplace_back(name, at::zeros({2}));
  }
  return parameters;
}

const ParameterGroup* find(const std::vector<ParameterGroup>& groups, const std::string& name) {
  for (const ParameterGroup& group : groups) {
    if (group.name == name) return &group;
  }
  return nullptr;
}

}  // namespace

TEST(MakeGroups, EachPartHasItsRateAndNormsAndBiasesHaveNoDecay) {
  const auto groups = make_groups(parameters_of_all_parts(), kParts,
                                  {.learning_rate = 1e-4, .vit_lr = 2e-5, .weight_decay = 0.1});
  std::vector<std::string> names;
  for (const ParameterGroup& group : groups) {
    names.push_back(group.name);
    EXPECT_EQ(group.learning_rate, group.name.starts_with("vit") ? 2e-5 : 1e-4) << group.name;
    EXPECT_EQ(group.weight_decay, group.name.ends_with(".no_decay") ? 0.0 : 0.1) << group.name;
    for (const at::Tensor& parameter : group.parameters) EXPECT_TRUE(parameter.requires_grad());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"vit", "vit.no_decay", "aligner", "aligner.no_decay",
                                             "llm", "llm.no_decay"}));
  EXPECT_EQ(find(groups, "llm")->names,
            (std::vector<std::string>{"model.language_model.embed_tokens.weight",
                                      "model.language_model.layers.0.mlp.up_proj.weight",
                                      "lm_head.weight"}));
  EXPECT_EQ(find(groups, "vit.no_decay")->names,
            (std::vector<std::string>{"model.visual.patch_embed.proj.bias",
                                      "model.visual.blocks.0.norm1.weight"}));
  EXPECT_EQ(find(groups, "aligner.no_decay")->names,
            (std::vector<std::string>{"model.visual.merger.norm.weight",
                                      "model.visual.deepstack_merger_list.0.linear_fc1.bias"}));
}

TEST(MakeGroups, TheNormOfAWindowedTowersMergerDoesNotDecay) {
  EXPECT_TRUE(is_undecayed("model.visual.merger.ln_q.weight"));
  EXPECT_FALSE(is_undecayed("model.visual.merger.mlp.0.weight"));
}

TEST(MakeGroups, OmitsFrozenPartsAndTheirGradients) {
  const auto parameters = parameters_of_all_parts();
  const auto groups =
      make_groups(parameters, kParts, {.learning_rate = 1}, {.vit = true, .aligner = true});
  for (const auto& [name, tensor] : parameters)
    EXPECT_EQ(tensor.requires_grad(), kParts(name) == ParameterPart::kLlm) << name;
  EXPECT_EQ(find(groups, "vit"), nullptr);
  EXPECT_EQ(find(groups, "aligner"), nullptr);
  EXPECT_NE(find(groups, "llm"), nullptr);
}

}  // namespace rematch
