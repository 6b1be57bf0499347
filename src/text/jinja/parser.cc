#include "text/jinja/parser.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"

namespace rematch::jinja {
namespace {

constexpr int kMaxBlocks = 100;  // nested statements

class StatementParser {
 public:
  StatementParser(const std::vector<Token>& tokens, const std::string& where)
      : in_(tokens, where), where_(where) {}

  Body run() {
    Body body = block({});
    if (in_.current().kind != TokenKind::kEnd) fail_stray();
    return body;
  }

 private:
  [[noreturn]] void fail_stray() const {
    template_error(where_, in_.current().line, "the chat template has a tag that closes nothing",
                   fmt::format("'{}'", in_.ahead().text));
  }

  std::unique_ptr<Node> make(NodeKind kind) const {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->line = in_.current().line;
    return node;
  }

  // Statements up to one of the closing tags (or the end of the template when there are none); the
  // tag itself stays.
  Body block(const std::vector<std::string>& closing) {
    const int begin_line = in_.current().line;
    if (++depth_ > kMaxBlocks) {
      template_error(where_, begin_line, "the chat template's tags are nested too deeply",
                     fmt::format("more than {} levels", kMaxBlocks));
    }
    Body body;
    while (in_.current().kind != TokenKind::kEnd) {
      if (in_.current().kind == TokenKind::kData) {
        body.push_back(make(NodeKind::kText));
        body.back()->text = in_.current().text;
        in_.next();
      } else if (in_.current().kind == TokenKind::kVariableBegin) {
        in_.next();
        body.push_back(make(NodeKind::kOutput));
        body.back()->expr = in_.tuple();
        if (in_.current().kind != TokenKind::kVariableEnd) in_.fail_at_current("'}}'");
        in_.next();
      } else {
        const std::string tag = in_.ahead().kind == TokenKind::kName ? in_.ahead().text : "";
        if (std::find(closing.begin(), closing.end(), tag) != closing.end()) {
          --depth_;
          return body;
        }
        body.push_back(statement(tag));
      }
    }
    if (!closing.empty()) {
      template_error(where_, begin_line, "a tag of the chat template is not closed",
                     fmt::format("no {} follows", join(closing, " or ")));
    }
    --depth_;
    return body;
  }

  void end_tag() {
    if (in_.current().kind != TokenKind::kBlockEnd) in_.fail_at_current("'%}'");
    in_.next();
  }

  // Moves past {% name; @return the name
  std::string open_tag() {
    in_.next();
    std::string name = in_.current().text;
    in_.next();
    return name;
  }

  std::unique_ptr<Node> statement(const std::string& tag) {
    if (tag == "if") return if_statement();
    if (tag == "for") return for_statement();
    if (tag == "set") return set_statement();
    if (tag == "macro") return macro_statement();
    if (tag == "break" || tag == "continue") {
      auto node = make(tag == "break" ? NodeKind::kBreak : NodeKind::kContinue);
      if (loops_ == 0)
        template_error(where_, node->line, fmt::format("{} is outside a loop", tag),
                       "no {% for %} around it");
      open_tag();
      end_tag();
      return node;
    }
    if (tag.starts_with("end") || tag == "else" || tag == "elif") fail_stray();
    if (tag.empty()) {
      in_.next();
      in_.fail_at_current("the name of a tag");
    }
    in_.refuse(fmt::format("the tag {{% {} %}}", tag));
  }

  std::unique_ptr<Node> if_statement() {
    auto node = make(NodeKind::kIf);
    open_tag();
    while (true) {
      ExprPtr condition = in_.tuple();
      end_tag();
      node->branches.emplace_back(std::move(condition), block({"elif", "else", "endif"}));
      const std::string tag = open_tag();
      if (tag == "elif") continue;
      end_tag();
      if (tag == "else") {
        node->branches.emplace_back(nullptr, block({"endif"}));
        open_tag();
        end_tag();
      }
      return node;
    }
  }

  std::vector<std::string> target_names() {
    const bool bracketed = in_.skip_operator("(");
    std::vector<std::string> names = {in_.expect_identifier()};
    while (in_.skip_operator(",")) {
      if (in_.at_operator("(")) in_.refuse("nested targets");
      if (in_.current().kind != TokenKind::kName || in_.at_name("in")) break;
      names.push_back(in_.expect_identifier());
    }
    if (bracketed) in_.expect_operator(")");
    return names;
  }

  std::unique_ptr<Node> for_statement() {
    auto node = make(NodeKind::kFor);
    open_tag();
    node->targets = target_names();
    if (std::find(node->targets.begin(), node->targets.end(), "loop") != node->targets.end())
      in_.refuse("a loop variable named loop");
    if (!in_.skip_name("in")) in_.fail_at_current("'in'");
    node->expr = in_.expression(false);
    if (in_.at_operator(",")) in_.refuse("a loop over several values without brackets");
    if (in_.skip_name("if")) node->condition = in_.expression();
    if (in_.at_name("recursive")) in_.refuse("a recursive loop");
    end_tag();
    ++loops_;
    node->body = block({"else", "endfor"});
    --loops_;
    if (open_tag() == "else") {
      end_tag();
      node->otherwise = block({"endfor"});
      open_tag();
    }
    end_tag();
    return node;
  }

  std::unique_ptr<Node> set_statement() {
    auto node = make(NodeKind::kSet);
    open_tag();
    if (in_.ahead().kind == TokenKind::kOperator && in_.ahead().text == ".") {
      node->targets = {in_.expect_identifier()};
      in_.next();
      node->attribute = in_.expect_identifier();
    } else {
      node->targets = target_names();
    }
    if (in_.skip_operator("=")) {
      node->expr = in_.tuple();
      end_tag();
      return node;
    }
    if (node->targets.size() != 1 || !node->attribute.empty()) in_.fail_at_current("'='");
    node->kind = NodeKind::kSetBlock;
    if (in_.at_operator("|")) {
      auto empty = std::make_unique<Expr>();
      empty->line = node->line;
      node->expr = in_.filters(std::move(empty));
    }
    end_tag();
    node->body = block({"endset"});
    open_tag();
    end_tag();
    return node;
  }

  std::unique_ptr<Node> macro_statement() {
    auto node = make(NodeKind::kMacro);
    if (loops_ > 0 || macros_ > 0) in_.refuse("a macro inside a loop or a macro");
    open_tag();
    node->macro.name = in_.expect_identifier();
    in_.expect_operator("(");
    while (!in_.at_operator(")")) {
      std::string name = in_.expect_identifier();
      ExprPtr fallback = in_.skip_operator("=") ? in_.expression() : nullptr;
      if (fallback == nullptr && !node->macro.parameters.empty() &&
          node->macro.parameters.back().second != nullptr) {
        in_.fail_at_current("a default, as the parameter before has one");
      }
      node->macro.parameters.emplace_back(std::move(name), std::move(fallback));
      if (!in_.skip_operator(",")) break;
    }
    in_.expect_operator(")");
    end_tag();
    ++macros_;
    node->macro.body = block({"endmacro"});
    --macros_;
    open_tag();
    if (in_.current().kind == TokenKind::kName) in_.next();  // endmacro may repeat the name
    end_tag();
    return node;
  }

  ExpressionParser in_;
  const std::string& where_;
  int depth_ = 0;
  int loops_ = 0;
  int macros_ = 0;
};

}  // namespace

Body parse_template(const std::vector<Token>& tokens, const std::string& where) {
  return StatementParser(tokens, where).run();
}

}  // namespace rematch::jinja
