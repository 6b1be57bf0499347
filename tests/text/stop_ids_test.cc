#include "model/text/stop_ids.h"

#include <gtest/gtest.h>

#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

const Tokenizer& golden_tokenizer() {
  static const auto loaded = Tokenizer::load(test::source_path("tests/golden/tokenizer"));
  return *loaded;
}

// Ids of <|endoftext|> and <|im_end|> in that tokenizer.
constexpr int kEndOfText = 360;
constexpr int kImEnd = 362;

std::vector<int> stop_ids_with(const std::string& generation_config) {
  test::TempDir dir;
  dir.write("generation_config.json", generation_config);
  return read_stop_ids(dir.path(), golden_tokenizer());
}

}  // namespace

TEST(StopIds, UniteTheEosWithTheTwoEndTokens) {
  EXPECT_EQ(stop_ids_with(R"({"eos_token_id": 7})"), (std::vector<int>{7, kEndOfText, kImEnd}));
  EXPECT_EQ(stop_ids_with(R"({"eos_token_id": [9, 7, 362, 9]})"),
            (std::vector<int>{7, 9, kEndOfText, kImEnd}));
  EXPECT_EQ(stop_ids_with(R"({"eos_token_id": null})"), (std::vector<int>{kEndOfText, kImEnd}));
  EXPECT_EQ(stop_ids_with(R"({})"), (std::vector<int>{kEndOfText, kImEnd}));
}

TEST(StopIds, FallBackToTheTextConfigWithoutAGenerationConfig) {
  test::TempDir dir;
  EXPECT_EQ(read_stop_ids(dir.path(), golden_tokenizer()), (std::vector<int>{kEndOfText, kImEnd}));
  dir.write("config.json", R"({"eos_token_id": 3, "text_config": {"eos_token_id": 5}})");
  EXPECT_EQ(read_stop_ids(dir.path(), golden_tokenizer()),
            (std::vector<int>{5, kEndOfText, kImEnd}));
  dir.write("config.json", R"({"eos_token_id": 3})");  // no text_config: its keys are at the top
  EXPECT_EQ(read_stop_ids(dir.path(), golden_tokenizer()),
            (std::vector<int>{3, kEndOfText, kImEnd}));
  dir.write("generation_config.json", R"({"eos_token_id": 8})");
  EXPECT_EQ(read_stop_ids(dir.path(), golden_tokenizer()),
            (std::vector<int>{8, kEndOfText, kImEnd}));
}

TEST(StopIds, RefuseWhatIsNotATokensId) {
  for (const char* eos :
       {"99999999", "[362,99999999]", "2147483648", "[]", "\"362\"", "-1", "1.5", "true",
        "4294967296", "18446744073709551615", "[[1]]", "[1,\"x\"]", "{}"}) {
    const UserError error = test::catch_user_error(
        [&] { stop_ids_with(std::string(R"({"eos_token_id": )") + eos + "}"); });
    EXPECT_EQ(error.kind(), ErrorKind::kData) << eos;
    EXPECT_NE(error.problems().front().where.find("generation_config.json"), std::string::npos)
        << eos;
    EXPECT_NE(error.problems().front().what.find(eos), std::string::npos) << eos;
  }
  EXPECT_EQ(test::catch_user_error([&] { stop_ids_with("[362]"); }).kind(), ErrorKind::kData);
  EXPECT_EQ(test::catch_user_error([&] { stop_ids_with("{"); }).kind(), ErrorKind::kData);
}

}  // namespace rematch
