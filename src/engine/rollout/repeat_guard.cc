#include "engine/rollout/repeat_guard.h"

#include <fmt/core.h>

#include <string>

#include "base/option_range.h"
#include "model/text/tokenizer.h"

namespace rematch {
namespace {

void require_at_least(const char* key, int value, int least) {
  if (value < least)
    refuse_value(fmt::format("repeat_terminate.{}", key), value,
                 fmt::format("{} or more", least).c_str());
}

}  // namespace

void ObjectKeyCounter::feed(std::string_view bytes) {
  for (const char byte : bytes) {
    if (in_string_) {
      feed_string(byte);
    } else {
      feed_outside(byte);
    }
  }
}

void ObjectKeyCounter::feed_outside(char byte) {
  if (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r') return;
  if (byte == '"') {
    // Repetitive text may not be valid JSON: every string that is not certainly a value is a key.
    is_candidate_ = previous_ != ':' && (containers_.empty() || containers_.back() == '{');
    in_string_ = true;
    escaped_ = false;
    string_len_ = 0;
    matches_ = true;
  } else if (byte == '{' || byte == '[') {
    containers_.push_back(byte);
  } else if ((byte == '}' || byte == ']') && !containers_.empty()) {
    containers_.pop_back();
  }
  previous_ = byte;
}

void ObjectKeyCounter::feed_string(char byte) {
  if (!escaped_ && byte == '"') {
    if (is_candidate_ && matches_ && string_len_ >= key_start_.size()) ++count_;
    in_string_ = false;
    return;
  }
  escaped_ = !escaped_ && byte == '\\';
  if (string_len_ < key_start_.size() && byte != key_start_[string_len_]) matches_ = false;
  ++string_len_;
}

void check_repeat_guard_options(const RepeatGuardSettings& options) {
  require_at_least("min_new_tokens", options.min_new_tokens, 0);
  require_at_least("max_consecutive_token_repeats", options.max_consecutive_token_repeats, 1);
  require_at_least("ngram_size", options.ngram_size, 1);
  // A single block does not repeat; 1 would end every answer.
  require_at_least("ngram_repeats", options.ngram_repeats, 2);
  require_at_least("max_object_keys", options.max_object_keys, 0);
}

RepeatGuard::RepeatGuard(const RepeatGuardSettings& options, const Tokenizer* tokenizer)
    : options_(options), tokenizer_(tokenizer), keys_(options.entry_key) {
  if (!options_.enabled) return;
  check_repeat_guard_options(options_);
  REMATCH_CHECK(options_.max_object_keys == 0 || tokenizer_ != nullptr,
                "max_object_keys needs token bytes");
}

bool RepeatGuard::push(TokenId token_id) {
  if (!options_.enabled) return false;
  run_len_ = !ids_.empty() && ids_.back() == token_id ? run_len_ + 1 : 1;
  const auto period = static_cast<size_t>(options_.ngram_size);
  const bool repeats = ids_.size() >= period && ids_[ids_.size() - period] == token_id;
  period_len_ = repeats ? period_len_ + 1 : 0;
  ids_.push_back(token_id);
  if (options_.max_object_keys > 0 && tokenizer_->has_token(token_id))
    keys_.feed(tokenizer_->token_bytes(token_id));

  if (std::ssize(ids_) < options_.min_new_tokens) return false;
  if (run_len_ >= options_.max_consecutive_token_repeats) return true;
  // The last r blocks of n ids are equal if and only if n·(r − 1) consecutive ids equal the id n
  // positions before them.
  if (period_len_ >= static_cast<int64_t>(options_.ngram_size) * (options_.ngram_repeats - 1))
    return true;
  return options_.max_object_keys > 0 && keys_.count() >= options_.max_object_keys;
}

RepeatGuard::Cut RepeatGuard::cut(const std::vector<TokenId>& generated_ids,
                                  const RepeatGuardSettings& options, const Tokenizer* tokenizer) {
  RepeatGuard guard(options, tokenizer);
  for (size_t i = 0; i < generated_ids.size(); ++i) {
    if (guard.push(generated_ids[i])) return {.num_kept = i + 1, .triggered = true};
  }
  return {.num_kept = generated_ids.size(), .triggered = false};
}

}  // namespace rematch
