#include "model/add_coord_tokens.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "model/model.h"
#include "model/stock_checkpoint.h"
#include "model/tiny_checkpoint.h"
#include "support/capture.h"

namespace rematch {
namespace {

using test::kEmbedding;
using test::kHead;

// Old rows keep their bits, new ones are near the mean of the rows in use and differ from each
// other.
void expect_coord_rows(const at::Tensor& before, const at::Tensor& after) {
  EXPECT_TRUE(at::equal(before.narrow(0, 0, 368), after.narrow(0, 0, 368)));
  const at::Tensor used = before.narrow(0, 0, 368).to(at::kFloat),
                   added = after.narrow(0, 368, 1000).to(at::kFloat);
  EXPECT_LT((added - used.mean(0)).abs().max().item<double>(), 0.05 * used.std().item<double>());
  EXPECT_EQ(std::get<0>(at::unique_dim(added, 0)).size(0), 1000);
}

TEST(AddCoordTokens, GrowsATiedEmbeddingWithoutFreeRows) {
  const test::CheckpointCopy stock = test::stock_checkpoint(400);
  test::TempDir dir;
  const AddedCoordTokens added = add_coord_tokens(stock.path(), dir.file("out"));
  EXPECT_EQ(added.first_id, 368);
  EXPECT_EQ(added.old_rows, 400);
  EXPECT_EQ(added.new_rows, 1368);
  EXPECT_EQ(read_json_file(dir.file("out/config.json"))["text_config"]["vocab_size"], 1368);
  expect_coord_rows(HfDir::open(stock.path())->tensor(kEmbedding),
                    HfDir::open(dir.file("out"))->tensor(kEmbedding));
  EXPECT_FALSE(HfDir::open(dir.file("out"))->has(kHead));
}

TEST(AddCoordTokens, UsesFreeRowsWhenThereAreEnough) {
  const test::CheckpointCopy stock = test::stock_checkpoint(1500);
  test::TempDir dir;
  const AddedCoordTokens added = add_coord_tokens(stock.path(), dir.file("out"));
  EXPECT_EQ(added.new_rows, 1500);
  const at::Tensor before = HfDir::open(stock.path())->tensor(kEmbedding),
                   after = HfDir::open(dir.file("out"))->tensor(kEmbedding);
  EXPECT_TRUE(at::equal(before.slice(0, 1368), after.slice(0, 1368)));
  expect_coord_rows(before, after);
}

TEST(AddCoordTokens, AddsRowsToAnUntiedHead) {
  test::CheckpointCopy stock = test::stock_checkpoint(400);
  stock.tensor(kHead) = stock.tensor(kEmbedding).flip(1) * 2;
  stock.write_weights();
  stock.edit_config([](Json& config) { config["tie_word_embeddings"] = false; });
  test::TempDir dir;
  add_coord_tokens(stock.path(), dir.file("out"));
  expect_coord_rows(stock.tensor(kHead), HfDir::open(dir.file("out"))->tensor(kHead));
  EXPECT_FALSE(Model::load(dir.file("out"), {})->tied());
}

TEST(AddCoordTokens, KeepsTheLogitsOfOldTokens) {
  const test::CheckpointCopy stock = test::stock_checkpoint(400);
  test::TempDir dir;
  add_coord_tokens(stock.path(), dir.file("out"));
  const RowInput row{.token_ids = {5, 6, 7, 8}, .segment_lens = {4}, .grids = {}};
  const auto logits = [&](const std::string& path) {
    const auto model = Model::load(path, {});
    return model->head_KV(model->forward_TH(row, {})).narrow(1, 0, 368);
  };
  EXPECT_LE((logits(stock.path()) - logits(dir.file("out"))).abs().max().item<double>(), 1e-5);
}

TEST(AddCoordTokens, ListsTheTokensInEveryTokenizerFile) {
  const test::CheckpointCopy stock = test::stock_checkpoint(400);
  stock.edit_json("tokenizer_config.json",
                  [](Json& config) { config["added_tokens_decoder"] = Json::object(); });
  stock.write("added_tokens.json", R"({"<|im_end|>": 362})");
  test::TempDir dir;
  add_coord_tokens(stock.path(), dir.file("out"));
  const Json token = read_json_file(dir.file("out/tokenizer.json"))["added_tokens"].back();
  EXPECT_EQ(
      token.dump(),
      R"({"id":1367,"content":"<|coord_999|>","single_word":false,"lstrip":false,"rstrip":false,)"
      R"("normalized":false,"special":false})");
  EXPECT_EQ(read_json_file(
                dir.file("out/tokenizer_config.json"))["added_tokens_decoder"]["368"]["content"],
            "<|coord_0|>");
  EXPECT_EQ(read_json_file(dir.file("out/added_tokens.json"))["<|coord_7|>"], 375);
  EXPECT_EQ(read_file(dir.file("out/chat_template.jinja")),
            read_file(stock.file("chat_template.jinja")));
}

TEST(AddCoordTokens, GivesTheSameBytesTwice) {
  const test::CheckpointCopy stock = test::stock_checkpoint(400);
  test::TempDir dir;
  add_coord_tokens(stock.path(), dir.file("a"));
  add_coord_tokens(stock.path(), dir.file("b"));
  for (const char* name : {"model.safetensors", "tokenizer.json", "config.json"}) {
    EXPECT_EQ(read_file(dir.file("a/") + name), read_file(dir.file("b/") + name));
  }
}

TEST(AddCoordTokens, RefusesModelsWithCoordTokens) {
  test::TempDir dir;
  const auto refusal = [&](const std::string& model) {
    const UserError error =
        test::catch_user_error([&] { add_coord_tokens(model, dir.file("out")); });
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
    return error.problems()[0].error + ", " + error.problems()[0].what;
  };
  EXPECT_EQ(refusal(test::tiny_tied()), "the model already has the coord tokens, 1000 of 1000");
  const test::CheckpointCopy partial = test::stock_checkpoint(400);
  partial.edit_json("tokenizer.json", [](Json& tokenizer) {
    Json token = tokenizer["added_tokens"].back();
    token["id"] = 368;
    token["content"] = "<|coord_3|>";
    tokenizer["added_tokens"].push_back(token);
  });
  EXPECT_EQ(refusal(partial.path()), "the model already has some of the coord tokens, 1 of 1000");
}

TEST(AddCoordTokens, RefusesANonEmptyOutputDirectory) {
  const test::CheckpointCopy stock = test::stock_checkpoint(400);
  test::TempDir dir;
  dir.write("out/precious", "1");
  const UserError error =
      test::catch_user_error([&] { add_coord_tokens(stock.path(), dir.file("out")); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_EQ(read_file(dir.file("out/precious")), "1");
}

TEST(AddCoordTokens, RefusesATokenizerThatDoesNotFitTheWeights) {
  const test::CheckpointCopy small = test::stock_checkpoint(300);
  test::TempDir dir;
  const UserError error =
      test::catch_user_error([&] { add_coord_tokens(small.path(), dir.file("out")); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_NE(error.problems()[0].what.find("368 tokens, 300 rows"), std::string::npos);
}

TEST(AddCoordTokens, AHubIdNamesHfDownload) {
  const UserError error = test::catch_user_error(
      [] { add_coord_tokens("Qwen/Qwen3-VL-2B-Instruct", "/tmp/never-written"); });
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
  EXPECT_NE(error.problems()[0].fix.find("hf download Qwen/Qwen3-VL-2B-Instruct"),
            std::string::npos);
}

}  // namespace
}  // namespace rematch
