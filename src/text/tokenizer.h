#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flow/token.h"

namespace rematch {

/// A token that is matched as a whole before byte-pair encoding, e.g. `<|im_end|>` or
/// `<|coord_5|>`.
struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool special = false;
  bool normalized = false;
  bool lstrip = false;
  bool rstrip = false;
  bool single_word = false;
};

/// Byte-level BPE tokenizer read from a Hugging Face `tokenizer.json` (MODEL 10). Immutable after
/// loading, safe to share between threads.
class Tokenizer {
 public:
  /// Reads `path` (a tokenizer.json, or a directory that holds one).
  /// @throws UserError (data) for a damaged file, or one that needs an unimplemented part
  /// (pre-tokenizer, normaliser, `byte_fallback`, …): named.
  static std::shared_ptr<const Tokenizer> load(const std::string& path);

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;

  /// Ids of a text, added tokens matched first, no special tokens added around it. Input must be
  /// valid UTF-8 (else UserError, data).
  std::vector<TokenId> encode(std::string_view utf8) const;

  /// The ids of a text with what the file's post-processor puts around them (`add_special_tokens`
  /// in transformers); no prompt has it.
  std::vector<TokenId> with_special_tokens(std::vector<TokenId> ids) const;

  /// Concatenated token bytes; may be invalid UTF-8 when ids split a character. Ids without a token
  /// are skipped.
  std::string decode_bytes(const std::vector<TokenId>& token_ids) const;

  /// True when `id` stands for a token (vocabulary or added).
  bool has_token(TokenId id) const;

  /// The raw bytes token `id` stands for (byte-level decoding undone; an added token's content);
  /// empty view when has_token(id) is false.
  std::string_view token_bytes(TokenId id) const;

  /// Id of an added token or vocabulary entry with exactly the *bytes* of `content`; nullopt when
  /// there is none.
  std::optional<TokenId> token_id(std::string_view content) const;

  /// Id of the single-byte vocabulary token of `byte`.
  TokenId byte_token(unsigned char byte) const;

  /// One more than the largest id.
  int num_ids() const;

  /// The first added token that occurs in `utf8` (as encode() would find it), or empty. Input
  /// must be valid UTF-8.
  std::string find_added_token(std::string_view utf8) const;

  /// In file order.
  const std::vector<AddedToken>& added_tokens() const;

 private:
  Tokenizer();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The 1000 coordinate tokens `<|coord_0|>` … `<|coord_999|>`; ids need not be contiguous or
/// ordered.
class CoordVocab {
 public:
  /// @throws UserError (data) naming the first missing token and `rematch add-coord-tokens`, or two
  /// that share an id.
  /// @param where  the model directory, for the error
  static CoordVocab from(const Tokenizer& tokenizer, const std::string& where);

  /// Token id of bin 0..999.
  TokenId id_of(int bin) const { return ids_[static_cast<size_t>(bin)]; }
  /// Bin of a token id; -1 when it is not a coord token.
  int bin_of(TokenId token_id) const {
    return token_id >= 0 && static_cast<size_t>(token_id) < bin_of_id_.size()
               ? bin_of_id_[static_cast<size_t>(token_id)]
               : -1;
  }
  /// Ids in bin order.
  const std::array<TokenId, 1000>& ids() const { return ids_; }

 private:
  std::array<TokenId, 1000> ids_{};
  std::vector<int> bin_of_id_;
};

}  // namespace rematch
