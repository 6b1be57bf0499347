#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/flow/token.h"
#include "base/strings.h"

namespace rematch {

struct TokenizerSpec;

/// A token that is matched as a whole before byte-pair encoding, e.g. `<|im_end|>`, `<|coord_5|>`.
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
  /// Reads `path`: a tokenizer.json, or a directory with this file or with vocab.json and
  /// merges.txt.
  /// @throws UserError (data) for a damaged file, or with the name of a part that is not
  /// implemented (pre-tokenizer, normaliser, `byte_fallback`, …); of a directory first as
  /// describe_model, then (config) if it holds no tokenizer
  static std::shared_ptr<const Tokenizer> load(const std::string& path);

  /// A tokenizer without a model: every byte is a token, and so is each of these texts. Answers
  /// are read with it when only their text is known.
  static std::shared_ptr<const Tokenizer> of_bytes(const Strings& added_tokens);

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;

  /// Encodes a text without special tokens around it; added tokens are matched first.
  /// @throws UserError (data) if the text is not valid UTF-8
  std::vector<TokenId> encode(std::string_view utf8) const;

  /// A text as encode() sees it: after the file's normaliser (NFC, or none). A response decodes to
  /// such a text if the model was taught it.
  /// @param utf8  must be valid UTF-8
  std::string normalize(std::string_view utf8) const;

  /// Adds the special tokens of the file's post-processor around the ids of a text, as
  /// transformers' `add_special_tokens`; prompts do not use it.
  std::vector<TokenId> add_special_tokens(std::vector<TokenId> ids) const;

  /// Concatenates the bytes of tokens; invalid UTF-8 if ids split a character. Ids without a token
  /// are skipped.
  std::string decode_bytes(const std::vector<TokenId>& token_ids) const;

  /// True if `id` is a token of the vocabulary or an added token.
  bool has_token(TokenId id) const;

  /// The raw bytes of a token, or the content of an added token; empty if has_token(id) is false.
  std::string_view token_bytes(TokenId id) const;

  /// Finds the added token or vocabulary entry with exactly these bytes; nullopt if there is none.
  std::optional<TokenId> token_id(std::string_view content) const;

  /// Id of the single-byte vocabulary token of `byte`.
  TokenId byte_token(unsigned char byte) const;

  /// One more than the largest id.
  int num_ids() const;

  /// Finds the first added token that encode() would match in `utf8`; empty if there is none.
  /// @param utf8  must be valid UTF-8
  std::string find_added_token(std::string_view utf8) const;

  /// All added tokens, in file order.
  const std::vector<AddedToken>& added_tokens() const;

 private:
  Tokenizer();
  static std::shared_ptr<const Tokenizer> build(const TokenizerSpec& spec);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The 1000 coord tokens `<|coord_0|>` … `<|coord_999|>`; their ids may have any order and gaps.
class CoordVocab {
 public:
  /// Finds the coord tokens of a tokenizer.
  /// @param where  the model directory, for errors
  /// @throws UserError (data) with the first missing token and the command that adds it, or with
  /// two tokens that share an id
  static CoordVocab from(const Tokenizer& tokenizer, const std::string& where);

  /// Token id of bin 0..999.
  TokenId id_of(int bin) const { return ids_[bin]; }
  /// Bin of a token id; -1 if it is not a coord token.
  int bin_of(TokenId token_id) const {
    return token_id >= 0 && static_cast<size_t>(token_id) < bin_of_id_.size() ? bin_of_id_[token_id]
                                                                              : -1;
  }
  /// Ids in bin order.
  const std::array<TokenId, 1000>& ids() const { return ids_; }

 private:
  std::array<TokenId, 1000> ids_{};
  std::vector<int> bin_of_id_;
};

}  // namespace rematch
