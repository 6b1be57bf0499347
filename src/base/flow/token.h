#pragma once

namespace rematch {

/// A token's number in the vocabulary: 0 … vocab_size - 1 (-1: no token, where that is allowed).
/// Tensors of ids are int64.
using TokenId = int;

}  // namespace rematch
