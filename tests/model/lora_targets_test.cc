#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "model/adapter_targets.h"
#include "model/families/family.h"
#include "model/model.h"
#include "model/tiny_checkpoint.h"
#include "support/capture.h"

namespace rematch {
namespace {

const std::vector<std::string>& names_of(const std::string& directory) {
  static std::map<std::string, std::vector<std::string>> all;
  std::vector<std::string>& names = all[directory];
  if (names.empty()) {
    const auto model = Model::load(directory, {});
    for (const NamedParameter& parameter : model->parameters()) names.push_back(parameter.name);
  }
  return names;
}

AdapterSelection select(const AdapterTargets& options) {
  return select_targets(describe_model(test::tiny_tied()), names_of(test::tiny_tied()), options);
}
UserError refused(const AdapterTargets& options) {
  return test::catch_user_error([&] { select(options); });
}

AdapterTargets list(std::vector<std::string> modules) {
  AdapterTargets options;
  options.target_modules = std::move(modules);
  return options;
}
AdapterTargets regex(const std::string& pattern) {
  AdapterTargets options;
  options.target_regex = pattern;
  return options;
}

bool is_visual(const std::string& name) { return name.find("model.visual.") == 0; }

}  // namespace

TEST(AdapterTargets, AllLinearMeansEveryLinearButTheHead) {
  const auto untied = Model::load(test::tiny_untied(), {});
  std::vector<std::string> expected;
  for (const auto& [module, layer] : untied->linears()) {
    if (module != "lm_head") expected.push_back(module);
  }
  std::vector<std::string> found =
      select_targets(describe_model(test::tiny_untied()), names_of(test::tiny_untied()), {})
          .modules;
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, expected);
  // PEFT gets the names: all-linear is expanded.
  EXPECT_EQ(select({}).targets.target_modules, select({}).modules);
}

TEST(AdapterTargets, AListMatchesWholeNamesAndDottedSuffixes) {
  EXPECT_EQ(select(list({"q_proj"})).modules.size(), 3u);
  EXPECT_EQ(select(list({"layers.1.self_attn.q_proj"})).modules,
            std::vector<std::string>{"model.language_model.layers.1.self_attn.q_proj"});
  EXPECT_EQ(select(list({"model.visual.merger.linear_fc1"})).modules.size(), 1u);
  EXPECT_EQ(select(list({"attn.proj", "qkv"})).modules.size(), 6u);
  EXPECT_EQ(select(list({"q_proj", "v_proj"})).targets.target_modules,
            (std::vector<std::string>{"q_proj", "v_proj"}));
}

TEST(AdapterTargets, ARegexMustMatchTheWholeName) {
  EXPECT_EQ(
      select(regex(R"(model\.language_model\.layers\.(1|2)\.mlp\.(up|down)_proj)")).modules.size(),
      4u);
  EXPECT_EQ(select(regex(".*merger.*linear_fc[12]")).modules.size(), 6u);
  EXPECT_EQ(*select(regex(".*\\.qkv")).targets.target_regex, ".*\\.qkv");
  EXPECT_NE(refused(regex("q_proj")).problems()[0].what.find("q_proj"), std::string::npos);
}

TEST(AdapterTargets, FrozenPartsGetNoAdapterAndPeftGetsTheModuleNames) {
  AdapterTargets options;
  options.is_frozen = is_visual;
  const AdapterSelection text = select(options);
  EXPECT_EQ(text.modules.size(), 21u);
  EXPECT_EQ(text.num_frozen, 18);
  EXPECT_TRUE(std::none_of(text.modules.begin(), text.modules.end(), is_visual));
  options.target_modules = {"linear_fc1"};
  EXPECT_NE(refused(options).problems()[0].error.find("frozen"), std::string::npos);
  options.target_modules = {"all-linear"};
  options.is_frozen = [](const std::string&) { return true; };
  const UserError all = refused(options);
  EXPECT_EQ(all.kind(), ErrorKind::kConfig);
  EXPECT_EQ(all.problems()[0].error, "nothing to adapt");
}

TEST(AdapterTargets, UnmatchedNamesAreReportedWithSimilarNames) {
  const UserError error = refused(list({"q_proj", "k_prj", "vision_model"}));
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  ASSERT_EQ(error.problems().size(), 2u);
  EXPECT_EQ(error.problems()[0].where, "tuner.target_modules");
  EXPECT_NE(error.problems()[0].error.find("k_prj"), std::string::npos);
  EXPECT_NE(error.problems()[0].what.find("k_proj"), std::string::npos);
  EXPECT_NE(refused(regex(R"(model\.layers\.\d+\.q_proj)")).problems()[0].what.find("model."),
            std::string::npos);
  EXPECT_FALSE(refused(list({})).problems().empty());
}

TEST(AdapterTargets, ARegexThatDoesNotCompileIsAConfigurationError) {
  const UserError error = refused(regex("layers\\.(1|2"));
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_EQ(error.problems()[0].where, "tuner.target_regex");
  EXPECT_NE(error.problems()[0].what.find("character"), std::string::npos);
}

TEST(AdapterTargets, RefusesModulesOtherThanLinearLayers) {
  EXPECT_NE(refused(list({"proj"})).problems()[0].fix.find("attn.proj"), std::string::npos);
  for (const char* name : {"embed_tokens", "mlp", "input_layernorm", "merger"}) {
    EXPECT_NE(refused(list({name})).problems()[0].error.find("not a Linear"), std::string::npos)
        << name;
  }
}

TEST(AdapterTargets, OnlyAnUntiedHeadCanBeATarget) {
  EXPECT_NE(refused(list({"lm_head"})).problems()[0].what.find("tied"), std::string::npos);
  EXPECT_EQ(select_targets(describe_model(test::tiny_untied()), names_of(test::tiny_untied()),
                           list({"lm_head"}))
                .modules,
            std::vector<std::string>{"lm_head"});
}

TEST(AdapterTargets, ModulesToSaveAreTrainedInFullAndNotAdapted) {
  AdapterTargets options;
  options.modules_to_save = {"visual.merger", "norm1"};
  const AdapterSelection selection = select(options);
  EXPECT_EQ(selection.saved_parameters.size(), 6u + 6u);
  EXPECT_EQ(selection.modules.size(), 39u - 2u);
  EXPECT_EQ(selection.targets.modules_to_save, options.modules_to_save);
  options.modules_to_save = {"no_such_module"};
  EXPECT_EQ(refused(options).problems()[0].where, "tuner.modules_to_save");
  options.modules_to_save = {"merger.norm"};
  options.is_frozen = is_visual;
  EXPECT_NE(refused(options).problems()[0].error.find("frozen"), std::string::npos);
}

}  // namespace rematch
