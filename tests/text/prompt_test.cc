#include "model/text/prompt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "learn/estep/answer/answer_format.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

constexpr const char* kTemplate =
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{% if message.content is string "
    "%}{{ message.content }}{% else %}{% for "
    "part in message.content %}"
    "{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ "
    "part.text }}{% endif %}{% endfor %}{% endif "
    "%}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

std::shared_ptr<const Tokenizer> tokenizer() {
  static const auto loaded = Tokenizer::load(test::source_path("tests/golden/tokenizer"));
  return loaded;
}

PromptTexts built_in(ObjectOrdering ordering) {
  return answer_formats().find("coord_tokens").built_in_prompt(ordering);
}

PromptEncoder encoder(PromptEncoder::Options options = {}, const char* source = kTemplate) {
  if (options.built_in.user.empty()) options.built_in = built_in(ObjectOrdering::kSorted);
  return PromptEncoder(
      tokenizer(), std::make_shared<const ChatTemplate>(ChatTemplate::from_text(source, "t.jinja")),
      std::move(options));
}

}  // namespace

TEST(PromptEncoder, ExpandsEachImagesPad) {
  const PromptEncoder prompts = encoder();
  const std::vector<int> ids = prompts.encode({{1, 8, 6}, {1, 2, 2}});
  const int pad = tokenizer()->encode("<|image_pad|>").at(0);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), pad), 8 * 6 / 4 + 1);
  std::string text = prompts.text(2);
  std::string twelve;
  for (int i = 0; i < 12; ++i) twelve += "<|image_pad|>";
  text.replace(text.find("<|image_pad|>"), std::string("<|image_pad|>").size(), twelve);
  EXPECT_EQ(ids, tokenizer()->encode(text));
  EXPECT_EQ(prompts.encode({{1, 8, 6}, {1, 2, 2}}), ids);  // from the cache
}

// Acceptance of Qwen3.5: the empty think block belongs to the prompt, whatever the template's
// default is.
TEST(PromptEncoder, TurnsThinkingOffExplicitlyAndRemembersIt) {
  const PromptEncoder prompts = encoder(
      {},
      "{{ messages[1].content[0].text }}{% if enable_thinking is defined and enable_thinking "
      "is false %}<think>\n\n</think>\n\n{% else %}<think>\n{% endif %}");
  EXPECT_TRUE(prompts.text(0, "U").ends_with("U<think>\n\n</think>\n\n")) << prompts.text(0, "U");
  EXPECT_EQ(prompts.template_variables(), (TemplateVariables{{"enable_thinking", false}}));
  EXPECT_TRUE(encoder().template_variables().empty());
  test::TempDir dir;
  write_stored_prompt(dir.path(), {.texts = {.system_prompt = {}, .user_prompt = "U"},
                                   .template_variables = prompts.template_variables()});
  EXPECT_EQ(read_stored_prompt(dir.path())->template_variables, prompts.template_variables());
  dir.write(kStoredPromptFile,
            R"({"system": "", "user": "U", "template_variables": {"enable_thinking": true}})");
  const UserError error = test::catch_user_error([&] { read_stored_prompt(dir.path()); });
  EXPECT_NE(error.problems()[0].where.find("enable_thinking"), std::string::npos);
}

TEST(PromptEncoder, PutsImagesBeforeTheTextAndEndsAtTheAnswer) {
  const std::string text = encoder({.texts = {.system_prompt = "S", .user_prompt = "U"}}).text(1);
  EXPECT_EQ(text,
            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\n<|vision_start|><|image_pad|><|"
            "vision_end|>U<|im_end|>\n<|im_start|>assistant\n");
}

TEST(PromptEncoder, TellsTheFormatInTheBuiltInPrompt) {
  const PromptEncoder sorted = encoder(),
                      random = encoder({.built_in = built_in(ObjectOrdering::kRandom)});
  for (const char* part : {"JSON object", "object_1", "desc", "bbox_2d", "poly", "coordinate token",
                           "999", "top to bottom", "left to right", "{}"}) {
    EXPECT_NE(sorted.system_prompt().find(part), std::string::npos) << part;
  }
  EXPECT_NE(random.system_prompt().find("any order"), std::string::npos);
  EXPECT_EQ(random.system_prompt().find("top to bottom"), std::string::npos);
  EXPECT_FALSE(sorted.user_prompt().empty());
}

TEST(PromptEncoder, LeavesOutTheSystemMessageOfAFormatWithoutOne) {
  const PromptEncoder prompts =
      encoder({.built_in = answer_formats().find("qwen_json").built_in_prompt({})});
  const std::string text = prompts.text(1);
  EXPECT_EQ(text.find("system"), std::string::npos) << text;
  EXPECT_TRUE(text.starts_with("<|im_start|>user")) << text;
}

TEST(PromptEncoder, RefusesPromptsThatCannotBeUsed) {
  for (const char* text : {"", " \n", "answer with <|coord_5|>", "end <|im_end|>", "caf\xe9"}) {
    const UserError system =
        test::catch_user_error([&] { encoder({.texts = {.system_prompt = text}}); });
    EXPECT_EQ(system.kind(), ErrorKind::kConfig);
    EXPECT_EQ(system.problems().front().where, "template.system");
    const UserError user =
        test::catch_user_error([&] { encoder({.texts = {.user_prompt = text}}); });
    EXPECT_EQ(user.problems().front().where, "custom.user_prompt");
  }
}

TEST(PromptEncoder, ASamplesOwnTextTakesThePlaceOfTheUsers) {
  const PromptEncoder prompts = encoder({.texts = {.system_prompt = "S", .user_prompt = "U"}});
  const PromptEncoder other = encoder({.texts = {.system_prompt = "S", .user_prompt = "cats"}});
  const std::vector<GridThw> grids{{1, 4, 4}};
  EXPECT_NE(prompts.encode(grids, "cats"), prompts.encode(grids));
  EXPECT_EQ(prompts.encode(grids, "cats"), other.encode(grids));
  EXPECT_EQ(prompts.encode({{1, 2, 2}}, "cats"), other.encode({{1, 2, 2}})) << "another image";
  EXPECT_EQ(prompts.encode(grids, "cats"), other.encode(grids)) << "from the cache";
  EXPECT_EQ(prompts.encode(grids, ""), prompts.encode(grids));
  EXPECT_EQ(prompts.text(1, "cats"), other.text(1));
}

TEST(PromptEncoder, ThreadsShareEachRenderedPrompt) {
  const PromptEncoder prompts = encoder();
  const std::vector<std::string> texts{"", "cats", "dogs", "birds"};
  std::vector<std::vector<std::vector<int>>> ids(4);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : ids) {
      threads.emplace_back([&prompts, &texts, &mine] {
        for (int round = 0; round < 20; ++round) {
          for (const std::string& text : texts) mine.push_back(prompts.encode({{1, 2, 2}}, text));
        }
      });
    }
  }
  for (const auto& mine : ids) {
    for (size_t i = 0; i < mine.size(); ++i)
      EXPECT_EQ(mine[i], prompts.encode({{1, 2, 2}}, texts[i % texts.size()]));
  }
}

TEST(PromptEncoder, RefusesATemplateWithoutAPadForEachImage) {
  const PromptEncoder none = encoder({}, "{{ messages[1].role }}");
  const UserError error = test::catch_user_error([&] { none.encode({{1, 2, 2}}); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_EQ(error.problems().front().what, "0 pads, 1 images");
  EXPECT_EQ(none.encode({}), tokenizer()->encode("user"));
}

TEST(PromptEncoder, RefusesGridsThatDoNotMerge) {
  for (const GridThw& grid : {GridThw{1, 3, 2}, GridThw{1, 2, 3}, GridThw{0, 2, 2},
                              GridThw{1, 0, 2}, GridThw{1, 2, -2}}) {
    EXPECT_EQ(test::catch_user_error([&] { encoder().encode({grid}); }).kind(), ErrorKind::kData);
  }
}

TEST(PromptEncoder, NeedsAVisionTokenizer) {
  const auto second = Tokenizer::load(test::source_path("tests/golden/text_tokenizer/second.json"));
  Json file = read_json_file(test::source_path("tests/golden/text_tokenizer/second.json"));
  Json& added = file["added_tokens"];
  added.erase(std::remove_if(added.begin(), added.end(),
                             [](const Json& token) { return token["content"] == "<|image_pad|>"; }),
              added.end());
  test::TempDir dir;
  const auto stripped = Tokenizer::load(dir.write("tokenizer.json", file.dump()));
  const auto chat =
      std::make_shared<const ChatTemplate>(ChatTemplate::from_text(kTemplate, "t.jinja"));
  PromptEncoder::Options options{.texts = {.system_prompt = "S", .user_prompt = "U"}};
  EXPECT_NO_THROW(PromptEncoder(second, chat, options));
  EXPECT_EQ(test::catch_user_error([&] { PromptEncoder(stripped, chat, options); }).kind(),
            ErrorKind::kData);
}

}  // namespace rematch
