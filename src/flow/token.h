#pragma once

namespace rematch {

/// A token's number in the vocabulary: 0 … vocab_size - 1 (-1 where something may hold none).
/// Tensors of ids are int64.
using TokenId = int;

}  // namespace rematch
