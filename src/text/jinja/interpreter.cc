#include "text/jinja/interpreter.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "text/jinja/lexer.h"

namespace rematch::jinja {

std::string Interpreter::render(const Dict& variables) {
  std::string text;
  out_ = &text;
  try {
    for (const auto& [name, value] : variables) root_.names[name] = value;
    run(body_, root_);
  } catch (const TemplateError& error) {
    template_error(where_, line_, error.error, error.what);
  }
  return text;
}

void Interpreter::spend(size_t count) {
  steps_ += static_cast<int64_t>(count);
  if (steps_ > limits_.steps) {
    throw TemplateError{"the chat template does not terminate",
                        fmt::format("more than {} operations", limits_.steps)};
  }
}

std::string Interpreter::text_of(const Value& value) {
  spend(value.is_namespace() ? Value(value.space().members).weight() : value.weight());
  return value.str();
}

Value Interpreter::text_value(std::string text) {
  spend(text.size() / 64 + 1);
  if (text.size() > limits_.text_bytes) {
    throw TemplateError{"the chat template creates a string that is too long",
                        fmt::format("more than {} bytes", limits_.text_bytes)};
  }
  return text;
}

void Interpreter::write(const std::string& text) {
  spend(text.size() / 64 + 1);
  if (out_->size() + text.size() > limits_.text_bytes) {
    throw TemplateError{"the output of the chat template is too long",
                        fmt::format("more than {} bytes", limits_.text_bytes)};
  }
  *out_ += text;
}

std::string Interpreter::captured(const Body& body, Scope& scope) {
  std::string text;
  std::string* outer = out_;
  out_ = &text;
  if (run(body, scope) != Flow::kNormal)
    throw not_implemented("break or continue inside a set block");
  out_ = outer;
  return text;
}

Interpreter::Flow Interpreter::run(const Body& body, Scope& scope) {
  for (const auto& node : body) {
    line_ = node->line;
    spend(1);
    if (const Flow flow = run_node(*node, scope); flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::run_node(const Node& node, Scope& scope) {
  switch (node.kind) {
    case NodeKind::kText: write(node.text); return Flow::kNormal;
    case NodeKind::kOutput: write(text_of(evaluate(*node.expr, scope))); return Flow::kNormal;
    case NodeKind::kFor: return run_for(node, scope);
    case NodeKind::kBreak: return Flow::kBreak;
    case NodeKind::kContinue: return Flow::kContinue;
    case NodeKind::kMacro:
      scope.names[node.macro.name] = Function{node.macro.name, &node.macro};
      return Flow::kNormal;
    case NodeKind::kSet: assign(node, evaluate(*node.expr, scope), scope); return Flow::kNormal;
    case NodeKind::kSetBlock: {
      Scope inner{{}, &scope};
      Value text = text_value(captured(node.body, inner));
      // The filters of {% set x | f %} apply to an empty constant, which represents the captured
      // text.
      std::vector<const Expr*> chain;
      for (const Expr* filter = node.expr.get();
           filter != nullptr && filter->kind != ExprKind::kConst; filter = filter->args[0].get()) {
        chain.push_back(filter);
      }
      for (auto filter = chain.rbegin(); filter != chain.rend(); ++filter) {
        if ((*filter)->kind != ExprKind::kFilter)
          throw not_implemented("something other than filters in a set block");
        text = apply_filter((*filter)->name, text, evaluate_arguments(**filter, scope));
      }
      assign(node, std::move(text), scope);
      return Flow::kNormal;
    }
    case NodeKind::kIf:
      for (const auto& [condition, body] : node.branches) {
        if (condition == nullptr || evaluate(*condition, scope).truthy()) return run(body, scope);
      }
      return Flow::kNormal;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::run_for(const Node& node, Scope& scope) {
  List items = items_of(evaluate(*node.expr, scope));
  if (node.condition != nullptr) {
    List kept;
    for (Value& item : items) {
      Scope inner{{}, &scope};
      bind(node.targets, item, inner);
      if (evaluate(*node.condition, inner).truthy()) kept.push_back(std::move(item));
    }
    items = std::move(kept);
  }
  if (items.empty()) {
    Scope inner{{}, &scope};
    return run(node.otherwise, inner);
  }
  const auto shared = std::make_shared<const List>(std::move(items));
  Flow last = Flow::kNormal;
  for (size_t i = 0; i < shared->size() && last != Flow::kBreak; ++i) {
    spend(1);
    line_ = node.line;
    Scope inner{{}, &scope};
    inner.names["loop"] = Value(std::make_shared<const Loop>(Loop{shared, i}));
    bind(node.targets, (*shared)[i], inner);
    last = run(node.body, inner);
  }
  return Flow::kNormal;
}

void Interpreter::bind(const std::vector<std::string>& targets, const Value& value, Scope& scope) {
  if (targets.size() == 1) {
    scope.names[targets.front()] = value;
    return;
  }
  const List parts = items_of(value);
  if (parts.size() != targets.size()) {
    throw TemplateError{"the chat template unpacks a value into the wrong number of names",
                        fmt::format("{} values for {} names", parts.size(), targets.size())};
  }
  for (size_t i = 0; i < targets.size(); ++i) scope.names[targets[i]] = parts[i];
}

void Interpreter::assign(const Node& node, Value value, Scope& scope) {
  if (node.attribute.empty()) return bind(node.targets, value, scope);
  const Value target = look_up(node.targets.front(), scope);
  if (!target.is_namespace()) {
    throw TemplateError{
        fmt::format("the chat template sets an attribute of {}, which is not a namespace",
                    node.targets.front()),
        target.type_name()};
  }
  if (value.is_namespace() || value.is_loop() || value.is_function()) {
    throw not_implemented(fmt::format("a {} inside a namespace", value.type_name()));
  }
  Dict& members = target.space().members;
  spend(members.size() / 16 + 1);
  put(members, node.attribute, std::move(value));
}

Value Interpreter::look_up(const std::string& name, const Scope& scope) const {
  for (const Scope* at = &scope; at != nullptr; at = at->parent) {
    if (const auto found = at->names.find(name); found != at->names.end()) return found->second;
  }
  if (is_function_name(name)) return Function{name, nullptr};
  return Undefined{name};
}

Arguments Interpreter::evaluate_arguments(const Expr& expr, Scope& scope) {
  Arguments arguments;
  for (size_t i = 1; i < expr.args.size(); ++i)
    arguments.positional.push_back(evaluate(*expr.args[i], scope));
  for (const auto& [name, value] : expr.keywords)
    arguments.keywords.emplace_back(name, evaluate(*value, scope));
  return arguments;
}

Value Interpreter::call(const Expr& expr, Scope& scope) {
  const Expr& callee = *expr.args[0];
  if (callee.kind == ExprKind::kAttr) {
    const Value object = evaluate(*callee.args[0], scope);
    if (object.is_undefined())
      fail_undefined(object, fmt::format("{}() is called on it", callee.name));
    const Arguments arguments = evaluate_arguments(expr, scope);
    line_ = expr.line;
    return call_method(*this, object, callee.name, arguments);
  }
  const Value function = evaluate(callee, scope);
  if (function.is_undefined()) fail_undefined(function, "the chat template calls it");
  if (!function.is_function()) {
    throw TemplateError{fmt::format("the chat template calls a {}", function.type_name()),
                        "only macros and functions can be called"};
  }
  const Arguments arguments = evaluate_arguments(expr, scope);
  line_ = expr.line;
  if (function.function().macro == nullptr)
    return call_function(*this, function.function().name, arguments);
  return call_macro(*function.function().macro, arguments);
}

Value Interpreter::call_macro(const MacroNode& macro, const Arguments& arguments) {
  if (++macro_depth_ > limits_.macro_depth) {
    throw TemplateError{
        fmt::format("the macro {} of the chat template is nested too deeply", macro.name),
        fmt::format("more than {} calls inside each other", limits_.macro_depth)};
  }
  std::vector<std::string> names;
  for (const auto& parameter : macro.parameters) names.push_back(parameter.first);
  const auto values = bind_arguments(macro.name, arguments, names);
  Scope inner{{}, &root_};
  for (size_t i = 0; i < values.size(); ++i) {
    const ExprPtr& fallback = macro.parameters[i].second;
    inner.names[names[i]] = values[i].has_value() ? *values[i]
                            : fallback != nullptr ? evaluate(*fallback, inner)
                                                  : Value(Undefined{names[i]});
  }
  Value text = text_value(captured(macro.body, inner));
  --macro_depth_;
  return text;
}

}  // namespace rematch::jinja
