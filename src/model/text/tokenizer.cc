#include "model/text/tokenizer.h"

#include <fmt/core.h>

#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "model/families/family.h"
#include "model/text/added_tokens.h"
#include "model/text/bpe.h"
#include "model/text/byte_level.h"
#include "model/text/normalize.h"
#include "model/text/pretokenize.h"
#include "model/text/split_pattern.h"
#include "model/text/tokenizer_file.h"

namespace rematch {
namespace {

/// @throws UserError for a directory without a tokenizer; first for a model of an unknown family,
/// whose tokenizer would be refused for what it lacks
void require_tokenizer(const std::string& directory) {
  if (path_exists(directory + "/config.json")) describe_model(directory);
  for (const char* name : {"/tokenizer.json", "/vocab.json"}) {
    if (path_exists(directory + name)) return;
  }
  throw config_error(
      {.error = "the model directory is not complete",
       .where = directory,
       .what = "it has no tokenizer: neither tokenizer.json nor vocab.json",
       .fix = "fetch all files of the model: `hf download OWNER/NAME --local-dir DIR`"});
}

// Maps ids to bytes and bytes to ids; refuses ids that occur twice.
struct TokenTable {
  Strings bytes;            // by id
  std::vector<bool> known;  // by id
  std::unordered_map<std::string, TokenId> id_of_bytes;

  void add(TokenId id, std::string token_bytes, const std::string& where) {
    const auto idx = static_cast<size_t>(id);
    if (idx >= bytes.size()) {
      bytes.resize(idx + 1);
      known.resize(idx + 1, false);
    }
    if (known[idx]) {
      fail_tokenizer(where, fmt::format("two tokens share the id {}", id),
                     fmt::format("{} and {}", quote(bytes[idx]), quote(token_bytes)));
    }
    known[idx] = true;
    id_of_bytes.emplace(token_bytes, id);
    bytes[idx] = std::move(token_bytes);
  }
  static std::string quote(const std::string& token_bytes) {
    return is_valid_utf8(token_bytes) ? "'" + token_bytes + "'"
                                      : "'" + bytes_to_entry(token_bytes) + "'";
  }
};

using EntryIds = std::unordered_map<std::string_view, TokenId>;

EntryIds index_entries(const TokenizerSpec& spec) {
  EntryIds ids;
  ids.reserve(spec.vocab.size());
  for (const auto& [entry, id] : spec.vocab) ids.emplace(entry, id);
  return ids;
}

std::array<TokenId, 256> find_byte_ids(const EntryIds& entries, const std::string& where) {
  std::array<TokenId, 256> ids{};
  for (int byte = 0; byte < 256; ++byte) {
    const std::string entry = bytes_to_entry(std::string(1, static_cast<char>(byte)));
    const auto found = entries.find(entry);
    if (found == entries.end()) {
      fail_tokenizer(where, fmt::format("the vocabulary has no token for the byte 0x{:02X}", byte),
                     fmt::format("entry '{}' is missing; byte-level BPE needs all 256", entry));
    }
    ids[byte] = found->second;
  }
  return ids;
}

std::vector<BytePairEncoder::Merge> make_merges(const TokenizerSpec& spec,
                                                const EntryIds& entries) {
  std::vector<BytePairEncoder::Merge> merges;
  merges.reserve(spec.merges.size());
  std::string joined;
  for (const auto& [left, right] : spec.merges) {
    const auto id = [&](std::string_view entry) {
      const auto found = entries.find(entry);
      if (found == entries.end()) {
        fail_tokenizer(
            spec.where + ": model.merges",
            fmt::format("merge {} uses '{}', which is not in the vocabulary", merges.size(), entry),
            fmt::format("'{}' + '{}'", left, right));
      }
      return found->second;
    };
    joined.assign(left).append(right);
    merges.push_back({id(left), id(right), id(joined)});
  }
  return merges;
}

PreTokenizer make_pre_tokenizer(const TokenizerSpec& spec) {
  const std::string where = spec.where + ": pre_tokenizer";
  std::vector<SplitRegex> steps;
  for (const SplitSpec& split : spec.splits) {
    steps.emplace_back(split.is_literal ? literal_to_pcre_pattern(split.pattern)
                                        : to_pcre_pattern(split.pattern, where),
                       where);
  }
  return PreTokenizer(std::move(steps));
}

// The added tokens of one pass. The second pass searches normalised text, so it needs normalised
// contents.
std::vector<AddedToken> select_tokens(const TokenizerSpec& spec, bool normalized) {
  std::vector<AddedToken> tokens;
  for (AddedToken token : spec.added_tokens) {
    if (token.normalized != normalized) continue;
    if (normalized && spec.nfc) token.content = reference_nfc(token.content);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace

struct Tokenizer::Impl {
  Impl(const TokenizerSpec& spec, const EntryIds& entries)
      : nfc(spec.nfc),
        added(spec.added_tokens),
        byte_ids(find_byte_ids(entries, spec.where + ": model.vocab")),
        encoder(byte_ids, make_merges(spec, entries)),
        pre_tokenizer(make_pre_tokenizer(spec)),
        raw_matcher(select_tokens(spec, false)),
        normalized_matcher(select_tokens(spec, true)),
        post_processor(spec.post_processor) {}

  void encode_plain(std::string_view text, std::vector<TokenId>& out) const {
    for (const std::string_view word : pre_tokenizer.words(text)) encoder.encode_word(word, out);
  }

  std::string normalize(std::string_view text) const {
    return nfc ? reference_nfc(text) : std::string(text);
  }

  // Encodes text between `normalized: false` tokens.
  void encode_between(std::string_view text, std::vector<TokenId>& out) const {
    const std::string normal = normalize(text);
    if (normalized_matcher.empty()) return encode_plain(normal, out);
    std::vector<TextSpan> spans;
    normalized_matcher.find(normal, spans);
    for (const TextSpan& span : spans) {
      if (span.token_id >= 0) {
        out.push_back(span.token_id);
      } else {
        encode_plain(span.text, out);
      }
    }
  }

  bool nfc;
  std::vector<AddedToken> added;
  std::array<TokenId, 256> byte_ids;
  BytePairEncoder encoder;
  PreTokenizer pre_tokenizer;
  AddedTokenMatcher raw_matcher;
  AddedTokenMatcher normalized_matcher;
  PostProcessor post_processor;
  TokenTable table;
};

Tokenizer::Tokenizer() = default;
Tokenizer::~Tokenizer() = default;

std::shared_ptr<const Tokenizer> Tokenizer::load(const std::string& path) {
  std::string file = path;
  bool from_parts = false;
  if (is_dir(path)) {
    require_tokenizer(path);
    file = path + "/tokenizer.json";
    from_parts = !path_exists(file) && path_exists(path + "/vocab.json") &&
                 path_exists(path + "/merges.txt");
  }
  return build(from_parts ? read_vocab_and_merges(path) : read_tokenizer_json(file));
}

std::shared_ptr<const Tokenizer> Tokenizer::of_bytes(const Strings& added_tokens) {
  TokenizerSpec spec{.where = "bytes"};
  TokenId id = 0;
  for (int byte = 0; byte < 256; ++byte)
    spec.vocab.emplace_back(bytes_to_entry(std::string(1, static_cast<char>(byte))), id++);
  for (const std::string& text : added_tokens)
    spec.added_tokens.push_back({.id = id++, .content = text, .special = true});
  return build(spec);
}

std::shared_ptr<const Tokenizer> Tokenizer::build(const TokenizerSpec& spec) {
  const EntryIds entries = index_entries(spec);

  auto tokenizer = std::shared_ptr<Tokenizer>(new Tokenizer());
  tokenizer->impl_ = std::make_unique<Impl>(spec, entries);
  TokenTable& table = tokenizer->impl_->table;
  const std::string where = spec.where + ": added_tokens";
  std::unordered_map<std::string, TokenId> added;
  for (const AddedToken& token : spec.added_tokens) {
    if (!added.emplace(token.content, token.id).second) {
      fail_tokenizer(where, fmt::format("the added token '{}' appears twice", token.content),
                     fmt::format("id {}", token.id));
    }
    const auto entry = entries.find(token.content);
    if (entry != entries.end() && entry->second != token.id) {
      fail_tokenizer(where, fmt::format("the added token '{}' has two ids", token.content),
                     fmt::format("{} here, {} in the vocabulary", token.id, entry->second));
    }
    table.add(token.id, token.content, where);
  }
  table.id_of_bytes.reserve(spec.vocab.size() + added.size());
  for (const auto& [entry, id] : spec.vocab) {
    if (added.find(entry) == added.end())
      table.add(id, entry_to_bytes(entry), spec.where + ": model.vocab");
  }
  return tokenizer;
}

std::string Tokenizer::normalize(std::string_view utf8) const { return impl_->normalize(utf8); }

std::vector<TokenId> Tokenizer::encode(std::string_view utf8) const {
  if (!is_valid_utf8(utf8)) {
    fail_tokenizer("text", "the text to tokenize is not UTF-8",
                   fmt::format("{} bytes", utf8.size()), "convert the text to UTF-8");
  }
  std::vector<TokenId> ids;
  ids.reserve(utf8.size() / 3 + 1);
  std::vector<TextSpan> spans;
  impl_->raw_matcher.find(utf8, spans);
  for (const TextSpan& span : spans) {
    if (span.token_id >= 0) {
      ids.push_back(span.token_id);
    } else {
      impl_->encode_between(span.text, ids);
    }
  }
  return ids;
}

std::vector<TokenId> Tokenizer::add_special_tokens(std::vector<TokenId> ids) const {
  return impl_->post_processor.apply(std::move(ids));
}

std::string Tokenizer::decode_bytes(const std::vector<TokenId>& token_ids) const {
  std::string bytes;
  for (const TokenId id : token_ids) bytes += token_bytes(id);
  return bytes;
}

bool Tokenizer::has_token(TokenId id) const {
  const auto& known = impl_->table.known;
  return id >= 0 && static_cast<size_t>(id) < known.size() && known[id];
}

std::string_view Tokenizer::token_bytes(TokenId id) const {
  return has_token(id) ? std::string_view(impl_->table.bytes[id]) : std::string_view();
}

std::optional<TokenId> Tokenizer::token_id(std::string_view content) const {
  const auto found = impl_->table.id_of_bytes.find(std::string(content));
  if (found == impl_->table.id_of_bytes.end()) return std::nullopt;
  return found->second;
}

TokenId Tokenizer::byte_token(unsigned char byte) const { return impl_->byte_ids[byte]; }

int Tokenizer::num_ids() const { return static_cast<int>(impl_->table.bytes.size()); }

std::string Tokenizer::find_added_token(std::string_view utf8) const {
  std::vector<TextSpan> spans;
  impl_->raw_matcher.find(utf8, spans);
  const std::string normal = impl_->nfc ? reference_nfc(utf8) : std::string(utf8);
  impl_->normalized_matcher.find(normal, spans);
  for (const TextSpan& span : spans) {
    if (span.token_id >= 0) return std::string(token_bytes(span.token_id));
  }
  return "";
}

const std::vector<AddedToken>& Tokenizer::added_tokens() const { return impl_->added; }

}  // namespace rematch
