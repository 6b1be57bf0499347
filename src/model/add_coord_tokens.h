#pragma once
#include <cstdint>
#include <string>

namespace rematch {

/// The result of add_coord_tokens.
struct AddedCoordTokens {
  int64_t first_id = 0;  ///< `<|coord_k|>` has id first_id + k
  int64_t old_rows = 0;  ///< of embedding and head
  int64_t new_rows = 0;  ///< equal to old_rows when the unused padding rows are sufficient
  bool untied = false;   ///< a head of its own was written, a copy of the embedding
};

/// Adds to a stock model directory the 1000 coord tokens `<|coord_0|>` … `<|coord_999|>`:
/// tokenizer files, config, embedding and head rows.
/// Tokens are ordinary added tokens (`special: false`, `normalized: false`): decoding with
/// skip_special_tokens keeps coordinates. New rows are the mean of the rows in use plus 1 % of
/// their spread as fixed noise, so that no two are equal; old rows keep their bits.
/// @param out_dir  appears complete or not at all
/// @param untie    gives a tied model a head of its own, equal to the embedding; nothing changes
/// for an untied one
/// @throws UserError (config) when `out_dir` is not empty; (data) when some or all coord tokens
/// already exist Cost: one read and one write of the weights; memory for one weights file.
AddedCoordTokens add_coord_tokens(const std::string& model_dir, const std::string& out_dir,
                                  bool untie = false);

}  // namespace rematch
