// Which format a checkpoint is asked and read in (BEHAVIOUR 19.9).
#include "learn/estep/answer/checkpoint_format.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

const std::string kModel = test::source_path("tests/golden/model/tiny_tied");

/// The golden tokenizer without its coord tokens, as a stock checkpoint's.
std::shared_ptr<const Tokenizer> stock_tokenizer(const test::TempDir& directory) {
  Json json = read_json_file(kModel + "/tokenizer.json");
  Json kept = Json::array();
  for (const Json& token : json["added_tokens"]) {
    if (!token["content"].get<std::string>().starts_with("<|coord_")) kept.push_back(token);
  }
  json["added_tokens"] = kept;
  return Tokenizer::load(directory.write("tokenizer.json", json.dump()));
}

}  // namespace

TEST(CheckpointFormat, IsGivenStoredOrFoundFromItsTokens) {
  const auto with_coords = Tokenizer::load(kModel);
  EXPECT_EQ(checkpoint_format({}, kModel, *with_coords), "coord_tokens");
  EXPECT_EQ(checkpoint_format("qwen2_5_json", kModel, *with_coords), "qwen2_5_json");

  const test::TempDir directory;
  const auto stock = stock_tokenizer(directory);
  EXPECT_EQ(checkpoint_format({}, directory.path(), *stock), "coord_tokens")
      << "a tokenizer alone has no family";
  directory.write("config.json", read_file(kModel + "/config.json"));
  EXPECT_EQ(checkpoint_format({}, directory.path(), *stock), "qwen_json");
  directory.write(
      "rematch_prompt.json",
      R"({"system": "", "user": "u", "max_new_tokens": 9, "answer_format": "qwen2_5_json"})");
  EXPECT_EQ(checkpoint_format({}, directory.path(), *stock), "qwen2_5_json");
  directory.write("rematch_prompt.json", R"({"system": "s", "user": "u", "max_new_tokens": 9})");
  EXPECT_EQ(checkpoint_format({}, directory.path(), *stock), "coord_tokens")
      << "files of older versions name no format";
}

}  // namespace rematch
