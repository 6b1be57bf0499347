#pragma once
#include "model/tiny_checkpoint.h"

namespace rematch::test {

/// A tied tiny checkpoint as it would come without coord tokens: 368 tokens, an embedding of
/// `num_rows` rows.
/// @param embedding  its name in the weights file
inline CheckpointCopy stock_checkpoint(
    int64_t num_rows, const std::string& source = tiny_tied(),
    const std::string& embedding = "model.language_model.embed_tokens.weight") {
  CheckpointCopy copy(source);
  at::Tensor& table = copy.tensor(embedding);
  table = at::cat({table, table.flip(0)}, 0).narrow(0, 0, num_rows).contiguous();
  copy.write_weights();
  copy.edit_config([&](Json& config) {
    config["text_config"]["vocab_size"] = num_rows;
    if (num_rows <= 360) config["text_config"]["pad_token_id"] = nullptr;
  });
  copy.edit_json("tokenizer.json", [](Json& tokenizer) {
    Json kept = Json::array();
    for (const Json& token : tokenizer["added_tokens"]) {
      if (token["content"].get<std::string>().rfind("<|coord_", 0) != 0) kept.push_back(token);
    }
    tokenizer["added_tokens"] = kept;
  });
  return copy;
}

}  // namespace rematch::test
