#include "model/text/pretokenize.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/core.h>
#include <pcre2.h>

#include "base/error.h"
#include "base/full_match.h"

namespace rematch {
namespace {

// Buffers of the matcher, one per thread, because threads share a regex.
struct Scratch {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(32 * 1024, 8 * 1024 * 1024, nullptr);

  Scratch() { pcre2_jit_stack_assign(context, nullptr, stack); }
  ~Scratch() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }
};

Scratch& scratch() {
  thread_local Scratch instance;
  return instance;
}

}  // namespace

struct SplitRegex::Impl {
  pcre2_code* code = nullptr;
  std::string where;
  ~Impl() { pcre2_code_free(code); }
};

SplitRegex::~SplitRegex() = default;
SplitRegex::SplitRegex(SplitRegex&&) noexcept = default;
SplitRegex& SplitRegex::operator=(SplitRegex&&) noexcept = default;

SplitRegex::SplitRegex(const std::string& pcre_pattern, const std::string& where)
    : impl_(std::make_unique<Impl>()) {
  impl_->where = where;
  int code = 0;
  PCRE2_SIZE offset = 0;
  impl_->code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pcre_pattern.data()), pcre_pattern.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code, &offset, nullptr);
  const char* fix = "use a model of a supported family: this pattern is not one of theirs";
  if (impl_->code == nullptr) {
    throw data_error({.error = "the pre-tokenizer's pattern is not a regular expression",
                      .where = where,
                      .what = fmt::format("{} at byte {} of {}", pcre2_message(code), offset,
                                          pcre_pattern.substr(0, 300)),
                      .fix = fix});
  }
  uint32_t matches_empty = 0;
  pcre2_pattern_info(impl_->code, PCRE2_INFO_MATCHEMPTY, &matches_empty);
  if (matches_empty != 0) {
    throw data_error(
        {.error = "the pre-tokenizer's pattern can match empty text, which is not implemented",
         .where = where,
         .what = pcre_pattern.substr(0, 300),
         .fix = fix});
  }
  pcre2_jit_compile(impl_->code, PCRE2_JIT_COMPLETE);  // on failure PCRE2 interprets the pattern
}

void SplitRegex::split(std::string_view utf8, std::vector<std::string_view>& pieces) const {
  Scratch& work = scratch();
  size_t done = 0;
  while (done < utf8.size()) {
    // The text is valid; without NO_UTF_CHECK every call would check the rest again.
    int found = pcre2_match(impl_->code, reinterpret_cast<PCRE2_SPTR>(utf8.data()), utf8.size(),
                            done, PCRE2_NO_UTF_CHECK, work.data, work.context);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
      found = pcre2_match(impl_->code, reinterpret_cast<PCRE2_SPTR>(utf8.data()), utf8.size(), done,
                          PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, work.data, work.context);
    }
    if (found == PCRE2_ERROR_NOMATCH) break;
    const PCRE2_SIZE* span = pcre2_get_ovector_pointer(work.data);
    if (found < 0 || span[1] <= span[0] || span[0] < done) {
      throw data_error({.error = "the pre-tokenizer's pattern cannot be matched against this text",
                        .where = impl_->where,
                        .what = fmt::format("{} at byte {} of {}",
                                            found < 0 ? pcre2_message(found) : "an empty match",
                                            done, utf8.size()),
                        .fix = "shorten the text, or use a model with a simpler pattern"});
    }
    if (span[0] > done) pieces.push_back(utf8.substr(done, span[0] - done));
    pieces.push_back(utf8.substr(span[0], span[1] - span[0]));
    done = span[1];
  }
  if (done < utf8.size()) pieces.push_back(utf8.substr(done));
}

std::vector<std::string_view> PreTokenizer::words(std::string_view utf8) const {
  std::vector<std::string_view> pieces;
  if (!utf8.empty()) pieces.push_back(utf8);
  for (const SplitRegex& step : steps_) {
    std::vector<std::string_view> finer;
    for (const std::string_view piece : pieces) step.split(piece, finer);
    pieces = std::move(finer);
  }
  return pieces;
}

}  // namespace rematch
