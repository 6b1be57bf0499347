#include "model/text/jinja/run.h"

#include <fmt/core.h>

namespace rematch::jinja {
namespace {

constexpr size_t kMaxSteps = 5'000'000;
// Steps inside each other, those of macros that call macros included.
constexpr int kMaxDepth = 500;

}  // namespace

std::string Run::render(Code program, const Value& variables) {
  Scope root(*this);
  root_ = &root;
  for (const auto& [name, value] : variables.members()) root.names[name] = value;
  std::string text;
  out_ = &text;
  (*this)(program);
  return text;
}

Value Run::operator()(Code code) {
  if (code == nullptr) return {};
  if (++depth_ > kMaxDepth) throw over_limit("levels", kMaxDepth);
  const int outer_line = std::exchange(line, code->line);
  Value value = code->apply(*this);
  // The weights of the operands, which steps gave before, bound the cost of an operation.
  num_steps_ += 1 + value.weight();
  if (num_steps_ > kMaxSteps) throw over_limit("operations", kMaxSteps);
  if (value.is_text() && value.text().size() > kMaxTextBytes)
    throw over_limit("bytes of text", kMaxTextBytes);
  line = outer_line;
  --depth_;
  return value;
}

Value Run::capture(Code code) {
  std::string written;
  std::string* outer = std::exchange(out_, &written);
  (*this)(code);
  out_ = outer;
  return written;
}

Value Run::call(const Macro& macro, const std::vector<Code>& arguments) {
  std::vector<Value> values;
  for (const Code argument : arguments) values.push_back((*this)(argument));
  Scope scope(*this);
  scope.parent = root_;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string& name = macro.parameters[i];
    scope.names[name] = arguments[i] != nullptr ? values[i] : Value::undefined(name);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (arguments[i] == nullptr && macro.defaults[i] != nullptr)
      scope.names[macro.parameters[i]] = (*this)(macro.defaults[i]);
  }
  return capture(macro.body);
}

void Run::write(const std::string& text) {
  if (out_->size() + text.size() > kMaxTextBytes) throw over_limit("bytes of text", kMaxTextBytes);
  *out_ += text;
}

Value Run::look_up(const std::string& name) const {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    if (const auto found = scope->names.find(name); found != scope->names.end())
      return found->second;
  }
  if (find_builtin(Table::kFunctions, name) == nullptr) return Value::undefined(name);
  return Value(std::make_shared<Macro>());
}

void Run::bind(const Strings& names, const Value& value) {
  if (names.size() == 1) {
    scope_->names[names[0]] = value;
    return;
  }
  const List parts = items_of(value);
  if (parts.size() != names.size())
    throw TemplateError{"the chat template unpacks a value into the wrong number of names",
                        fmt::format("{} values for {} names", parts.size(), names.size())};
  for (size_t i = 0; i < names.size(); ++i) scope_->names[names[i]] = parts[i];
}

}  // namespace rematch::jinja
