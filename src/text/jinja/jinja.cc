#include "text/jinja/jinja.h"

#include <fmt/core.h>

#include "base/error.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/lexer.h"
#include "text/jinja/parser.h"

namespace rematch {
namespace {

constexpr size_t kMaxTemplateBytes = 1 << 20;

}  // namespace

struct JinjaTemplate::Impl {
  std::string where;
  jinja::Body body;
};

JinjaTemplate::JinjaTemplate(std::string_view source, std::string where)
    : impl_(std::make_unique<Impl>()) {
  impl_->where = std::move(where);
  if (source.size() > kMaxTemplateBytes) {
    jinja::template_error(impl_->where, 1, "the chat template is too long",
                          fmt::format("{} bytes, at most {}", source.size(), kMaxTemplateBytes));
  }
  impl_->body = jinja::parse_template(jinja::tokenize_template(source, impl_->where), impl_->where);
}

JinjaTemplate::~JinjaTemplate() = default;
JinjaTemplate::JinjaTemplate(JinjaTemplate&&) noexcept = default;
JinjaTemplate& JinjaTemplate::operator=(JinjaTemplate&&) noexcept = default;

std::string JinjaTemplate::render(const Json& variables) const {
  jinja::Value values;
  try {
    values = jinja::Value::from_json(variables);
  } catch (const jinja::TemplateError& error) {
    throw UserError(ErrorKind::kData, {.error = error.error,
                                       .where = "messages",
                                       .what = error.what,
                                       .fix = "pass smaller messages"});
  }
  REMATCH_CHECK(values.is_dict(), values.type_name());
  return jinja::Interpreter(impl_->body, impl_->where, jinja::Limits()).render(values.dict());
}

}  // namespace rematch
