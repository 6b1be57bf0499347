#include "model/text/jinja/jinja.h"

#include <fmt/core.h>

#include "base/error.h"
#include "base/text.h"
#include "model/text/jinja/parser.h"

namespace rematch {
namespace {

constexpr size_t kMaxTemplateBytes = 1 << 20;

[[noreturn]] void fail(const std::string& where, int line, const jinja::TemplateError& error) {
  throw data_error({.error = error.error,
                    .where = fmt::format("{}:{}", where, error.line > 0 ? error.line : line),
                    .what = error.what,
                    .fix = "use the chat template that came with the model, or correct that line"});
}

}  // namespace

struct JinjaTemplate::Impl {
  std::string where;
  jinja::Program program;
  jinja::Code root = nullptr;
};

JinjaTemplate::JinjaTemplate(std::string_view source, std::string where)
    : impl_(std::make_unique<Impl>()) {
  impl_->where = std::move(where);
  try {
    if (source.size() > kMaxTemplateBytes || !is_valid_utf8(source))
      throw jinja::TemplateError{
          "the chat template is too long or not UTF-8",
          fmt::format("{} bytes, at most {}", source.size(), kMaxTemplateBytes)};
    impl_->root = jinja::Parser(source).parse(impl_->program);
  } catch (const jinja::TemplateError& error) {
    fail(impl_->where, 1, error);
  }
}

JinjaTemplate::~JinjaTemplate() = default;
JinjaTemplate::JinjaTemplate(JinjaTemplate&&) noexcept = default;
JinjaTemplate& JinjaTemplate::operator=(JinjaTemplate&&) noexcept = default;

std::string JinjaTemplate::render(const Json& variables) const {
  jinja::Run run;
  try {
    const auto values = jinja::Value::from_json(variables);
    REMATCH_CHECK(values.is(jinja::Type::kDict), values.type_name());
    return run.render(impl_->root, values);
  } catch (const jinja::TemplateError& error) {
    fail(impl_->where, run.line, error);
  }
}

}  // namespace rematch
