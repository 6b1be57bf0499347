#include "base/full_match.h"

#include <fmt/core.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"
#include "base/text.h"

namespace rematch {

std::string pcre2_message(int code) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(code, text, sizeof(text));
  return reinterpret_cast<const char*>(text);
}

struct FullMatch::Impl {
  pcre2_code* code = nullptr;
  pcre2_match_data* data = nullptr;
  std::string pattern;
  std::string where;
  ~Impl() {
    pcre2_match_data_free(data);
    pcre2_code_free(code);
  }
};

FullMatch::FullMatch(const std::string& pattern, const std::string& where)
    : impl_(std::make_unique<Impl>()) {
  impl_->pattern = pattern;
  impl_->where = where;
  const auto fail = [&](std::string what) {
    throw config_error(
        {.error = "a regular expression does not compile",
         .where = where,
         .what = std::move(what),
         .fix = "correct the pattern; it must match the whole name, as in Python's re.fullmatch"});
  };
  if (!is_valid_utf8(pattern)) fail("the pattern is not UTF-8");
  int error = 0;
  PCRE2_SIZE offset = 0;
  impl_->code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_UTF | PCRE2_ANCHORED | PCRE2_ENDANCHORED, &error, &offset, nullptr);
  if (impl_->code == nullptr)
    fail(fmt::format("{} at character {} of `{}`", pcre2_message(error), offset + 1,
                     pattern.substr(0, 300)));
  impl_->data = pcre2_match_data_create_from_pattern(impl_->code, nullptr);
}

FullMatch::~FullMatch() = default;

bool FullMatch::matches(std::string_view text) const {
  const int found = pcre2_match(impl_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                0, 0, impl_->data, nullptr);
  if (found >= 0) return true;
  if (found == PCRE2_ERROR_NOMATCH) return false;
  throw config_error({.error = "a regular expression cannot be matched",
                      .where = impl_->where,
                      .what = fmt::format("{} on `{}` with `{}`", pcre2_message(found), text,
                                          impl_->pattern.substr(0, 300)),
                      .fix = "write the pattern without nested repetitions such as `(a*)*`"});
}

}  // namespace rematch
