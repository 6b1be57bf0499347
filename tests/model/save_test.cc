#include "model/save.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "model/tiny_checkpoint.h"
#include "support/capture.h"

namespace rematch {
namespace {

TEST(SaveHfModel, GivesBackTheSameWeightsAndCopiesTheRest) {
  const auto model = Model::load(test::tiny_tied(), {.dtype = at::kBFloat16});
  test::TempDir dir;
  save_hf_model(test::tiny_tied(), *model, dir.path());
  EXPECT_EQ(read_file(dir.file("model.safetensors")),
            read_file(test::tiny_tied() + "/model.safetensors"));
  for (const char* name :
       {"config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
        "preprocessor_config.json", "generation_config.json"}) {
    EXPECT_EQ(read_file(dir.file(name)), read_file(test::tiny_tied() + "/" + name)) << name;
  }
}

TEST(SaveHfModel, Float32WeightsChangeOnlyTheDtypeKey) {
  const auto model = Model::load(test::tiny_tied(), {});
  test::TempDir dir;
  save_hf_model(test::tiny_tied(), *model, dir.path());
  Json wanted = read_json_file(test::tiny_tied() + "/config.json");
  wanted["dtype"] = "float32";
  EXPECT_EQ(read_file(dir.file("config.json")), python_json(wanted, 2) + "\n");
  EXPECT_EQ(HfDir::open(dir.path())->dtype("model.language_model.norm.weight"), at::kFloat);
}

TEST(SaveHfModel, ShardsLoadAgain) {
  const auto model = Model::load(test::tiny_untied(), {});
  test::TempDir dir;
  save_hf_model(test::tiny_untied(), *model, dir.path(), {.max_shard_bytes = 40'000});
  EXPECT_TRUE(std::filesystem::exists(dir.file("model.safetensors.index.json")));
  const auto again = Model::load(dir.path(), {});
  ASSERT_EQ(again->parameters().size(), model->parameters().size());
  for (const NamedParameter& parameter : model->parameters()) {
    EXPECT_TRUE(at::equal(parameter.tensor, again->parameter(parameter.name))) << parameter.name;
  }
}

TEST(SaveHfModel, AnUnwritableDirectoryIsAnEnvironmentError) {
  const auto model = Model::load(test::tiny_untied(), {});
  EXPECT_EQ(test::catch_user_error([&] {
              save_hf_model(test::tiny_untied(), *model, "/proc/nowhere");
            }).kind(),
            ErrorKind::kEnvironment);
}

TEST(ConfigWithDtype, SetsEverySpellingAndKeepsOrderAndUnknownKeys) {
  const std::string text = R"({"z": 1, "torch_dtype": "bfloat16", "a": {"x": [1e-06, 5000000.0]}, )"
                           R"("text_config": {"dtype": "bfloat16", "q": null}})";
  EXPECT_EQ(config_with_dtype(text, "float32", "x"),
            "{\n  \"z\": 1,\n  \"torch_dtype\": \"float32\",\n  \"a\": {\n    \"x\": [\n      "
            "1e-06,\n      5000000.0\n    ]\n  },\n"
            "  \"text_config\": {\n    \"dtype\": \"float32\",\n    \"q\": null\n  }\n}\n");
  EXPECT_EQ(config_with_dtype(text, "bfloat16", "x"), text);
  EXPECT_EQ(config_with_dtype("{}", "float32", "x"), "{}");
}

}  // namespace
}  // namespace rematch
