#include "model/text/chat_template.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

std::string json_with(const std::string& source) {
  return Json({{"chat_template", source}}).dump();
}

const Json kMessages = Json::parse(R"([{"role": "user", "content": "hi"}])");

}  // namespace

TEST(ChatTemplate, IsLookedUpInTheProcessorsOrder) {
  test::TempDir dir;
  EXPECT_EQ(test::catch_user_error([&] { ChatTemplate::load(dir.path()); }).kind(),
            ErrorKind::kData);
  dir.write("tokenizer_config.json", json_with("tokenizer_config"));
  EXPECT_EQ(ChatTemplate::load(dir.path()).render(kMessages, false), "tokenizer_config");
  dir.write("chat_template.jinja", "jinja");
  EXPECT_EQ(ChatTemplate::load(dir.path()).render(kMessages, false), "jinja");
  dir.write("chat_template.json", json_with("json"));
  EXPECT_EQ(ChatTemplate::load(dir.path()).render(kMessages, false), "json");
  dir.write("processor_config.json", json_with("processor"));
  const ChatTemplate chat = ChatTemplate::load(dir.path());
  EXPECT_EQ(chat.render(kMessages, false), "processor");
  EXPECT_EQ(chat.where(), dir.file("processor_config.json"));
  EXPECT_EQ(chat.warnings().size(), 3u);
  EXPECT_NE(chat.warnings()[0].find("different chat templates"), std::string::npos);
}

TEST(ChatTemplate, SaysNothingWhenSourcesAgree) {
  test::TempDir dir;
  dir.write("chat_template.json", json_with("same"));
  dir.write("chat_template.jinja", "same\n");
  dir.write("processor_config.json", "{\"image_processor\": {}}");
  EXPECT_TRUE(ChatTemplate::load(dir.path()).warnings().empty());
}

TEST(ChatTemplate, TakesTheDefaultOfNamedTemplates) {
  test::TempDir dir;
  dir.write("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "r"}, )"
                                     R"({"name": "default", "template": "d"}]})");
  EXPECT_EQ(ChatTemplate::load(dir.path()).render(kMessages, false), "d");
  dir.write("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "r"}]})");
  EXPECT_EQ(test::catch_user_error([&] { ChatTemplate::load(dir.path()); }).kind(),
            ErrorKind::kData);
  dir.write("tokenizer_config.json", R"({"chat_template": 5})");
  EXPECT_EQ(test::catch_user_error([&] { ChatTemplate::load(dir.path()); }).kind(),
            ErrorKind::kData);
}

TEST(ChatTemplate, KnowsTheSpecialTokensOfTheTokenizer) {
  test::TempDir dir;
  dir.write(
      "tokenizer_config.json",
      R"({"eos_token": "<|im_end|>", "pad_token": {"content": "<|pad|>"}, "bos_token": null})");
  dir.write("chat_template.jinja",
            "{{ eos_token }}{{ pad_token }}{{ bos_token is defined }}{{ tools is none }}{{ "
            "enable_thinking is defined }}");
  const ChatTemplate chat = ChatTemplate::load(dir.path());
  EXPECT_EQ(chat.render(kMessages, false), "<|im_end|><|pad|>FalseTrueFalse");
  EXPECT_EQ(chat.render(kMessages, false, {{"enable_thinking", true}}),
            "<|im_end|><|pad|>FalseTrueTrue");
}

TEST(ChatTemplate, NamesAnUnknownConstructWithItsLine) {
  test::TempDir dir;
  dir.write("chat_template.jinja", "line\n{% generation %}x{% endgeneration %}");
  const UserError error = test::catch_user_error([&] { ChatTemplate::load(dir.path()); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_EQ(error.problems().front().where, dir.file("chat_template.jinja") + ":2");
  EXPECT_NE(error.problems().front().error.find("{% generation %}"), std::string::npos);
}

TEST(ChatTemplate, RefusesMessagesOfAnotherForm) {
  const ChatTemplate chat = ChatTemplate::from_text("{{ messages[0].role }}", "t");
  for (const char* messages :
       {"[]", "{}", "5", "[5]", "[{}]", "[{\"role\": 1}]", "[{\"role\": \"user\", \"content\": 5}]",
        "[{\"role\": \"user\", \"content\": [\"x\"]}]"}) {
    const UserError error =
        test::catch_user_error([&] { chat.render(Json::parse(messages), true); });
    EXPECT_EQ(error.kind(), ErrorKind::kData) << messages;
  }
  EXPECT_EQ(chat.render(
                Json::parse(R"([{"role": "assistant", "content": null, "tool_calls": []}])"), true),
            "assistant");
}

}  // namespace rematch
