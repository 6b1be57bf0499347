#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "model/text/lossy.h"
#include "model/text/tokenizer.h"
#include "support/capture.h"
#include "support/paths.h"
#include "tool_stages.h"

namespace rematch {
namespace {

StageOptions golden_model() {
  StageOptions options;
  options.model_dir = test::source_path("tests/golden/tokenizer");
  return options;
}

// A model directory with a tokenizer, a chat template and an image processor.
class ModelDir {
 public:
  ModelDir() {
    dir_.write("tokenizer.json",
               read_file(test::source_path("tests/golden/tokenizer/tokenizer.json")));
    dir_.write("chat_template.jinja",
               "{% for m in messages %}{{ m.role }}{% for p in m.content %}{{ '<|image_pad|>' if "
               "p.type == 'image' else p.text }}{% endfor "
               "%}{% endfor %}"
               "{{ '>' if add_generation_prompt }}");
    dir_.write("preprocessor_config.json",
               R"({"patch_size": 8, "merge_size": 2, "temporal_patch_size": 2,
      "image_mean": [0.5, 0.5, 0.5],
      "image_std": [0.5, 0.5, 0.5], "size": {"shortest_edge": 256, "longest_edge": 16777216},
      "image_processor_type": "Qwen2VLImageProcessor"})");
  }
  StageOptions options() const {
    StageOptions options;
    options.model_dir = dir_.path();
    return options;
  }

 private:
  test::TempDir dir_;
};

}  // namespace

TEST(TokenizeStage, GivesIdsAndPieces) {
  const Json answer = make_tokenize_stage(golden_model())->run({{"text", "a<|im_end|>\u00e9"}});
  EXPECT_EQ(answer["pieces"],
            Json::parse("[\"a\", \"<|im_end|>\", \"\xEF\xBF\xBD\", \"\xEF\xBF\xBD\"]"));
  EXPECT_EQ(answer["token_ids"].size(), 4u);
  const Json back = make_tokenize_stage(golden_model())->run({{"token_ids", answer["token_ids"]}});
  EXPECT_EQ(back, Json({{"text", "a<|im_end|>\u00e9"}}));
}

TEST(TokenizeStage, AddsSpecialTokensOnRequest) {
  StageOptions options;
  options.model_dir = test::source_path("tests/golden/text_saved/bert.json");
  const auto stage = make_tokenize_stage(options);
  const Json plain = stage->run({{"text", "a"}}),
             special = stage->run({{"text", "a"}, {"add_special_tokens", true}});
  EXPECT_EQ(plain["token_ids"].size(), 1u);
  ASSERT_EQ(special["token_ids"].size(), 3u);
  EXPECT_EQ(special["token_ids"][1], plain["token_ids"][0]);
  EXPECT_EQ(special["pieces"][0], "<|im_start|>");
}

TEST(TokenizeStage, RefusesOtherInputs) {
  const auto stage = make_tokenize_stage(golden_model());
  for (const char* input :
       {"{}", R"({"text": "a", "token_ids": [1]})", R"({"txt": "a"})", R"({"text": 5})",
        R"({"token_ids": "a"})", R"({"text": "a", "more": 1})"}) {
    EXPECT_THROW(stage->run(Json::parse(input)), UserError) << input;
  }
}

TEST(RenderStage, ExpandsPadsWhenImagesAreGiven) {
  const ModelDir model;
  const auto stage = make_render_stage(model.options());
  // 32 x 32
  const std::string image = test::source_path("tests/golden/vision_images/pixel_qwen3.png");
  Json input = Json::parse(
      R"([{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "see"}]}])");
  const Json plain = stage->run({{"messages", input}});
  EXPECT_EQ(plain["text"], "user<|image_pad|>see");
  EXPECT_EQ(plain["image_grid_thw"], Json::array());
  const Json with_image =
      stage->run({{"messages", input}, {"images", {image}}, {"add_generation_prompt", true}});
  // (32 / 8 / 2)² pads
  const std::string text = "user<|image_pad|><|image_pad|><|image_pad|><|image_pad|>see>";
  EXPECT_EQ(with_image["text"], text);
  EXPECT_EQ(with_image["image_grid_thw"], Json::parse("[[1, 4, 4]]"));
  EXPECT_EQ(with_image["token_ids"],
            Json(Tokenizer::load(model.options().model_dir)->encode(text)));
  const std::string odd = test::source_path("tests/golden/vision_images/resized.png");  // 45 x 37
  EXPECT_EQ(stage->run({{"messages", input}, {"images", {odd}}})["image_grid_thw"],
            Json::parse("[[1, 4, 6]]"));
}

TEST(RenderStage, RefusesOtherInputs) {
  const ModelDir model;
  const auto stage = make_render_stage(model.options());
  const std::string image = test::source_path("tests/golden/vision_images/pixel_qwen3.png");
  const std::string odd = test::source_path("tests/golden/vision_images/animated.png");
  const Json messages = Json::parse(R"([{"role": "user", "content": [{"type": "image"}]}])");
  for (const Json& input : std::vector<Json>{Json::object(),
                                             {{"messages", messages}, {"images", {image, image}}},
                                             {{"messages", messages}, {"images", image}},
                                             {{"messages", messages}, {"images", {odd}}},
                                             {{"messages", messages}, {"images", {"/no/such.png"}}},
                                             {{"messages", messages}, {"tools", 1}},
                                             {{"messages", "hello"}}}) {
    EXPECT_THROW(stage->run(input), UserError) << input;
  }
}

TEST(LossyUtf8, ReplacesAsPythonDoes) {
  // bytes.decode("utf-8", "replace") of the same bytes
  EXPECT_EQ(lossy_utf8("a\xc3"), "a\uFFFD");
  EXPECT_EQ(lossy_utf8("\xe2\x82z"), "\uFFFDz");
  EXPECT_EQ(lossy_utf8("\xf0\x9f\x98\xf0\x9f\x98\x80"), "\uFFFD\U0001F600");
  EXPECT_EQ(lossy_utf8("\xc0\x80"), "\uFFFD\uFFFD");
  EXPECT_EQ(lossy_utf8("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(lossy_utf8("\xf4\x90\x80\x80\xff"), "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(lossy_utf8("\u6f22 ok"), "\u6f22 ok");
}

TEST(RunStage, KeepsGoingAfterABadLine) {
  const auto stage = make_tokenize_stage(golden_model());
  std::istringstream in(
      "{\"id\": 1, \"text\": \"a\"}\n{\"id\": 2}\nnonsense\n{\"id\": 3, \"token_ids\": [362]}\n");
  std::ostringstream out;
  EXPECT_EQ(run_stage(*stage, 1, in, out), 3);
  const std::vector<std::string> lines = split(out.str(), '\n');
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(Json::parse(lines[0])["id"], 1);
  EXPECT_EQ(Json::parse(lines[1])["error"]["kind"], "data");
  EXPECT_TRUE(Json::parse(lines[2]).contains("error"));
  EXPECT_EQ(Json::parse(lines[3])["text"], "<|im_end|>");
}

}  // namespace rematch
