#include "estep/parse/stop_ids.h"

#include <gtest/gtest.h>

#include "parse/vocab.h"
#include "support/capture.h"

namespace rematch {
namespace {

std::vector<int> with_config(const std::string& content) {
  const test::TempDir directory;
  directory.write("generation_config.json", content);
  return stop_token_ids(*test::vocab().tokenizer, directory.path());
}

}  // namespace

TEST(StopTokenIds, AreThoseOfTheTwoEndTokensWithoutAGenerationConfig) { EXPECT_EQ(test::vocab().stop_ids, (std::vector<int>{360, 362})); }

TEST(StopTokenIds, JoinTheEosOfTheGenerationConfig) {
  EXPECT_EQ(with_config(R"({"eos_token_id": 5})"), (std::vector<int>{5, 360, 362}));
  EXPECT_EQ(with_config(R"({"eos_token_id": [362, 5, 9]})"), (std::vector<int>{5, 9, 360, 362}));
  EXPECT_EQ(with_config(R"({"eos_token_id": null})"), (std::vector<int>{360, 362}));
  EXPECT_EQ(with_config("{}"), (std::vector<int>{360, 362}));
}

TEST(StopTokenIds, RefuseADamagedGenerationConfig) {
  for (const char* content : {"{", R"({"eos_token_id": "5"})", R"({"eos_token_id": -1})", R"({"eos_token_id": [1.5]})"}) {
    EXPECT_EQ(test::catch_user_error([&] { with_config(content); }).kind(), ErrorKind::kData) << content;
  }
}

}  // namespace rematch
