#pragma once
#include <cstdint>
#include <string>

namespace rematch {

/// The result of add_coord_tokens.
struct AddedCoordTokens {
  int64_t first_id = 0;  ///< `<|coord_k|>` has id first_id + k
  int64_t old_rows = 0;  ///< of embedding and head
  int64_t new_rows = 0;  ///< equal to old_rows if there are enough unused padding rows
  bool untied = false;   ///< true if a separate head was written, a copy of the embedding
};

/// Adds the 1000 coord tokens `<|coord_0|>` … `<|coord_999|>` to a stock model directory: tokenizer
/// files, config, embedding and head rows.
/// They are ordinary added tokens (`special: false`, `normalized: false`), so decoding with
/// skip_special_tokens keeps coordinates. A new row is the mean of the used rows plus fixed noise
/// of 1 % of their spread, so that no two are equal; old rows keep their bits. Cost: one read and
/// one write of the weights; memory for one weights file.
/// @param out_dir  written atomically
/// @param untie    gives a tied model a separate head, equal to the embedding; no effect on an
/// untied model
/// @throws UserError (config) if `out_dir` is not empty; (data) if any coord tokens already exist
AddedCoordTokens add_coord_tokens(const std::string& model_dir, const std::string& out_dir,
                                  bool untie = false);

}  // namespace rematch
