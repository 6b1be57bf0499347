#include <fmt/core.h>

#include <algorithm>

#include "model/text/jinja/parser.h"

namespace rematch::jinja {
namespace {

// Statements, brackets and prefixes inside each other.
constexpr int kMaxDepth = 200;
constexpr size_t kMaxMembers = 1000;

// The name `loop` for one item.
Value loop_state(const List& items, size_t i) {
  const auto size = std::ssize(items), index = static_cast<int64_t>(i);
  const auto item = [&](size_t at, const char* name) {
    return at < items.size() ? items[at] : Value::undefined(name);
  };
  return {Dict{{"index", index + 1},
               {"index0", index},
               {"first", index == 0},
               {"last", index + 1 == size},
               {"length", size},
               {"previtem", item(i - 1, "previtem")},
               {"nextitem", item(i + 1, "nextitem")}},
          Type::kLoop};
}

}  // namespace

Code Parser::parse(Program& program) {
  program_ = &program;
  return block({});
}

Code Parser::add(std::function<Value(Run&)> apply, int begin) {
  program_->push_back({begin > 0 ? begin : line(), std::move(apply)});
  return &program_->back();
}

void Parser::enter() {
  if (++depth_ > kMaxDepth) refuse(fmt::format("more than {} levels", kMaxDepth));
}

std::string Parser::target() {
  const std::string name = word();
  if (is_reserved(name) || !named_constant(name).is_absent()) fail_here("a name");
  if (name == "loop" || find_builtin(Table::kFunctions, name) != nullptr)
    refuse(fmt::format("a variable named {}", name));
  return take_word();
}

// Statements up to a tag of one of these names, which is passed, or up to the end.
Code Parser::block(std::initializer_list<std::string_view> ends) {
  enter();
  const int begin = line();
  std::vector<Code> codes;
  while (true) {
    std::string text;
    const char kind = next_tag(text);
    if (!text.empty()) codes.push_back(add([text](Run& run) { return run.write(text), Value(); }));
    if (kind == '\0') {
      if (ends.size() == 0) break;
      throw TemplateError{"a tag of the chat template is not closed",
                          fmt::format("no {} follows", *(ends.end() - 1)), begin};
    }
    if (kind == '{') {
      const Code value = expression();
      codes.push_back(add([=](Run& run) { return run.write(run(value).str()), Value(); }));
    } else {
      end_ = word();
      if (std::ranges::find(ends, end_) != ends.end()) {
        take_word();
        break;
      }
      codes.push_back(statement());
    }
    end_tag();
  }
  --depth_;
  return add([codes](Run& run) {
    for (const Code code : codes) run(code);
    return Value();
  });
}

// Everything of a statement but the end of its last tag.
Code Parser::statement() {
  if (skip("if")) return if_statement();
  if (skip("for")) return for_statement();
  if (skip("set")) return set_statement();
  if (skip("macro")) return macro_statement();
  if (end_.empty()) fail_here("the name of a tag");
  refuse(fmt::format("the tag {{% {} %}} here", end_));
}

Code Parser::if_statement() {
  std::vector<std::pair<Code, Code>> branches;
  for (end_ = "if"; end_ != "endif";) {
    const bool is_else = end_ == "else";
    const Code condition = is_else ? nullptr : binary_expression(1);
    end_tag();
    const Code body = is_else ? block({"endif"}) : block({"elif", "else", "endif"});
    branches.emplace_back(condition, body);
  }
  return add([branches](Run& run) {
    for (const auto& [condition, body] : branches) {
      if (condition == nullptr || run(condition).truthy()) return run(body);
    }
    return Value();
  });
}

Code Parser::for_statement() {
  const int begin = line();
  Strings names = {target()};
  while (skip(",")) names.push_back(target());
  expect("in");
  const Code all = binary_expression(1);
  const Code condition = skip("if") ? expression() : nullptr;
  end_tag();
  ++num_loops_and_macros_;
  const Code body = block({"endfor"});
  --num_loops_and_macros_;
  return add(
      [=](Run& run) {
        List items;
        for (const Value& item : items_of(run(all))) {
          const Run::Scope scope(run);
          run.bind(names, item);
          if (condition == nullptr || run(condition).truthy()) items.push_back(item);
        }
        for (size_t i = 0; i < items.size(); ++i) {
          const Run::Scope scope(run);
          run.bind({"loop"}, loop_state(items, i));
          run.bind(names, items[i]);
          run(body);
        }
        return Value();
      },
      begin);
}

Code Parser::set_statement() {
  const std::string name = target();
  const std::string attribute = skip(".") ? target() : "";
  Code value = nullptr;
  if (skip("=")) {
    value = expression();
  } else {
    end_tag();
    const Code body = block({"endset"});
    value = add([=](Run& run) {
      const Run::Scope scope(run);
      return run.capture(body);
    });
  }
  if (attribute.empty())
    return add([=](Run& run) { return run.bind({name}, run(value)), Value(); });
  return add([=](Run& run) {
    // As an item of a list it is checked: a namespace is never inside another value.
    const Value checked(List{run(value)}), target = run.look_up(name);
    if (!target.is(Type::kNamespace)) throw wrong_type("sets an attribute of", target);
    if (target.members().size() > kMaxMembers)
      throw over_limit("names in a namespace", kMaxMembers);
    put(target.members(), attribute, checked.list()[0]);
    return Value();
  });
}

Code Parser::macro_statement() {
  if (num_loops_and_macros_ > 0) refuse("a macro inside a loop or a macro");
  const auto macro = std::make_shared<Macro>();
  macro->name = target();
  expect("(");
  while (!at(")")) {
    const bool has_default = !macro->defaults.empty() && macro->defaults.back() != nullptr;
    macro->parameters.push_back(target());
    if (has_default && !at("=")) fail_here("a default, as the parameter before has one");
    macro->defaults.push_back(skip("=") ? expression() : nullptr);
    if (!skip(",")) break;
  }
  expect(")");
  end_tag();
  ++num_loops_and_macros_;
  macro->body = block({"endmacro"});
  --num_loops_and_macros_;
  return add([macro](Run& run) { return run.bind({macro->name}, Value(macro)), Value(); });
}

}  // namespace rematch::jinja
