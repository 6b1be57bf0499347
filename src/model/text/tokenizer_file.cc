#include "model/text/tokenizer_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "model/families/family.h"

namespace rematch {
namespace {

std::string show(const Json& value) { return show_json(value, 120); }

// A member, or a null value if it is absent.
const Json& member(const Json& object, const char* key) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

[[noreturn]] void refuse(const std::string& where, const std::string& part, const Json& value) {
  fail_tokenizer(where, fmt::format("the tokenizer needs {}, which is not implemented", part),
                 show(value), kOtherTokenizer);
}

// Reads the "type" of a part such as the normaliser.
std::string read_type(const Json& part, const std::string& where) {
  const Json& type = member(part, "type");
  if (!type.is_string()) fail_tokenizer(where, "a part of the tokenizer has no type", show(part));
  return type.get<std::string>();
}

bool read_flag(const Json& object, const char* key, bool fallback, const std::string& where) {
  const Json& value = member(object, key);
  if (value.is_null()) return fallback;
  if (!value.is_boolean())
    fail_tokenizer(fmt::format("{}: {}", where, key), fmt::format("{} is not true or false", key),
                   show(value));
  return value.get<bool>();
}

bool has_nfc(const Json& normalizer, const std::string& where) {
  if (normalizer.is_null()) return false;
  const std::string type = read_type(normalizer, where);
  if (type == "NFC") return true;
  if (type != "Sequence" || !member(normalizer, "normalizers").is_array()) {
    refuse(where, fmt::format("the normaliser {}", type), normalizer);
  }
  bool nfc = false;
  for (const Json& step : member(normalizer, "normalizers")) nfc = has_nfc(step, where) || nfc;
  return nfc;
}

SplitSpec read_split(const Json& step, const std::string& where) {
  const Json& behavior = member(step, "behavior");
  if (behavior != "Isolated")
    refuse(where, fmt::format("Split with behavior {}", show(behavior)), step);
  if (read_flag(step, "invert", false, where)) refuse(where, "Split with invert", step);
  const Json& pattern = member(step, "pattern");
  for (const char* kind : {"Regex", "String"}) {
    const Json& text = member(pattern, kind);
    if (text.is_string() && !text.get_ref<const std::string&>().empty())
      return {text.get<std::string>(), kind[0] == 'S'};
  }
  fail_tokenizer(where, "a Split has no pattern", show(step));
}

// Reads Split steps followed by exactly one ByteLevel that only changes the alphabet.
void read_pre_tokenizer(const Json& part, TokenizerSpec& spec) {
  const std::string where = spec.where + ": pre_tokenizer";
  if (part.is_null()) refuse(where, "no pre-tokenizer (null)", part);
  std::vector<Json> steps = {part};
  if (read_type(part, where) == "Sequence") {
    const Json& list = member(part, "pretokenizers");
    if (!list.is_array())
      fail_tokenizer(where, "the Sequence has no list of pretokenizers", show(part));
    steps = list.get<std::vector<Json>>();
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string type = read_type(steps[i], where);
    const bool is_last = i + 1 == steps.size();
    if (type == "Split" && !is_last) {
      spec.splits.push_back(read_split(steps[i], where));
    } else if (type == "ByteLevel" && is_last) {
      if (read_flag(steps[i], "use_regex", true, where))
        refuse(where, "ByteLevel with use_regex", steps[i]);
      if (read_flag(steps[i], "add_prefix_space", true, where))
        refuse(where, "ByteLevel with add_prefix_space", steps[i]);
    } else if (type == "Split" || type == "ByteLevel") {
      refuse(where, "a pre-tokenizer that does not end in ByteLevel", part);
    } else {
      refuse(where, fmt::format("the pre-tokenizer {}", type), steps[i]);
    }
  }
  if (steps.empty()) refuse(where, "an empty pre-tokenizer", part);
}

void check_model_flags(const Json& model, const std::string& where) {
  const Json& type = member(model, "type");
  if (!type.is_null() && type != "BPE")
    refuse(where, fmt::format("the model {}", show(type)), type);
  for (const char* key : {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                          "fuse_unk", "byte_fallback", "ignore_merges"}) {
    const Json& value = member(model, key);
    const bool unset =
        value.is_null() || value == false || value == "" || (value.is_number() && value == 0);
    if (!unset) refuse(where, fmt::format("model.{}", key), value);
  }
}

void read_vocab(const Json& vocab, TokenizerSpec& spec, const std::string& where) {
  if (!vocab.is_object() || vocab.empty())
    fail_tokenizer(where, "the vocabulary is not an object of entries", show(vocab));
  spec.vocab.reserve(vocab.size());
  for (const auto& entry : vocab.items()) {
    const Json& id = entry.value();
    if (!id.is_number_integer() || id < 0 || id > kMaxTokenId) {
      fail_tokenizer(
          where,
          fmt::format("the vocabulary entry {} has no valid id", python_json_string(entry.key())),
          show(id));
    }
    spec.vocab.emplace_back(entry.key(), id.get<int>());
  }
}

void read_merges(const Json& merges, TokenizerSpec& spec, const std::string& where) {
  if (!merges.is_array()) fail_tokenizer(where, "the merges are not a list", show(merges));
  spec.merges.reserve(merges.size());
  for (const Json& merge : merges) {
    if (merge.is_string()) {
      const std::string& text = merge.get_ref<const std::string&>();
      const size_t space = text.find(' ');
      if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
        fail_tokenizer(where, fmt::format("merge {} is not a pair", spec.merges.size()),
                       show(merge));
      }
      spec.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      spec.merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
    } else {
      fail_tokenizer(where, fmt::format("merge {} is not a pair", spec.merges.size()), show(merge));
    }
  }
}

AddedToken read_added_token(const Json& value, const Json& id, const std::string& where) {
  const Json& content = member(value, "content");
  if (!content.is_string() || content.get_ref<const std::string&>().empty())
    fail_tokenizer(where, "an added token has no content", show(value));
  if (!id.is_number_integer() || id < 0 || id > kMaxTokenId) {
    fail_tokenizer(where, fmt::format("the added token {} has no valid id", show(content)),
                   show(id));
  }
  AddedToken token{.id = id.get<int>(), .content = content.get<std::string>()};
  token.special = read_flag(value, "special", false, where);
  token.normalized = read_flag(value, "normalized", !token.special, where);
  token.lstrip = read_flag(value, "lstrip", false, where);
  token.rstrip = read_flag(value, "rstrip", false, where);
  token.single_word = read_flag(value, "single_word", false, where);
  return token;
}

void check_decoder(const Json& root, const std::string& path) {
  // The decoder is not used, but another kind than ByteLevel means that the spelling of a token
  // does not give its bytes.
  const Json& decoder = member(root, "decoder");
  if (!decoder.is_null() && read_type(decoder, path + ": decoder") != "ByteLevel") {
    refuse(path + ": decoder", fmt::format("the decoder {}", read_type(decoder, path)), decoder);
  }
}

}  // namespace

TokenizerSpec read_tokenizer_json(const std::string& path) {
  return parse_tokenizer_json(read_file(path), path);
}

TokenizerSpec parse_tokenizer_json(std::string_view text, const std::string& path) {
  const Json root = parse_json(text, path);
  TokenizerSpec spec;
  spec.where = path;
  if (!root.is_object()) fail_tokenizer(path, "the tokenizer is not a JSON object", show(root));
  // `truncation` and `padding` are not read: they are settings of the last caller, which
  // transformers resets in every call too.
  spec.nfc = has_nfc(member(root, "normalizer"), path + ": normalizer");
  read_pre_tokenizer(member(root, "pre_tokenizer"), spec);
  check_decoder(root, path);
  spec.post_processor =
      PostProcessor::read(member(root, "post_processor"), path + ": post_processor");
  const Json& model = member(root, "model");
  if (!model.is_object())
    fail_tokenizer(path + ": model", "the tokenizer has no model", show(model));
  check_model_flags(model, path + ": model");
  read_vocab(member(model, "vocab"), spec, path + ": model.vocab");
  read_merges(member(model, "merges"), spec, path + ": model.merges");
  const Json& added = member(root, "added_tokens");
  if (!added.is_null() && !added.is_array())
    fail_tokenizer(path + ": added_tokens", "added_tokens is not a list", show(added));
  for (const Json& token : added)
    spec.added_tokens.push_back(
        read_added_token(token, member(token, "id"), path + ": added_tokens"));
  return spec;
}

TokenizerSpec read_vocab_and_merges(const std::string& directory) {
  TokenizerSpec spec;
  spec.where = directory;
  spec.nfc = true;
  const std::string config_path = directory + "/tokenizer_config.json";
  const Json config = read_json_file(config_path);
  const Json& name = member(config, "tokenizer_class");
  const auto of_class = [&name](const Family& family) {
    return std::ranges::any_of(family.tokenizer_classes,
                               [&name](const std::string& known) { return name == known; });
  };
  const auto family = std::find_if(families().begin(), families().end(), of_class);
  if (family == families().end()) {
    refuse(config_path + ": tokenizer_class",
           "a tokenizer.json (vocab.json and merges.txt suffice only for known families)", name);
  }
  spec.splits.push_back({family->split_pattern, false});  // these files do not contain it
  const std::string vocab_path = directory + "/vocab.json";
  read_vocab(read_json_file(vocab_path), spec, vocab_path);

  const std::string merges_path = directory + "/merges.txt";
  Json merges = Json::array();
  for (std::string& line : split(read_file(merges_path), '\n')) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!is_valid_utf8(line))
      fail_tokenizer(merges_path, "merges.txt is not UTF-8",
                     fmt::format("merge {}", merges.size()));
    if (!line.empty() && !line.starts_with("#version")) merges.push_back(std::move(line));
  }
  read_merges(merges, spec, merges_path);

  const Json& decoder = member(config, "added_tokens_decoder");
  if (!decoder.is_null() && !decoder.is_object())
    fail_tokenizer(config_path, "added_tokens_decoder is not an object", show(decoder));
  for (const auto& entry : decoder.items()) {
    const std::string& digits = entry.key();
    const bool is_number = !digits.empty() && digits.size() <= 9 &&
                           std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
    if (!is_number)
      fail_tokenizer(config_path, "a key of added_tokens_decoder is not an id",
                     python_json_string(digits));
    spec.added_tokens.push_back(read_added_token(entry.value(), Json(std::stoi(digits)),
                                                 config_path + ": added_tokens_decoder"));
  }
  std::ranges::sort(spec.added_tokens,
                    [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  return spec;
}

}  // namespace rematch
