#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace rematch::jinja {

enum class ExprKind {
  kConst,    ///< constant
  kName,     ///< name
  kList,     ///< args; name "tuple" for a tuple
  kDict,     ///< args: key, value, key, value …
  kAttr,     ///< args[0] . name
  kItem,     ///< args[0] [ args[1] ]
  kSlice,    ///< args[0] [ args[1] : args[2] : args[3] ], absent parts null
  kCall,     ///< args[0] ( args[1…], keywords )
  kFilter,   ///< args[0] | name ( args[1…], keywords )
  kTest,     ///< args[0] is name ( args[1…] )
  kNot,      ///< not args[0]
  kNegate,   ///< - args[0]
  kPlus,     ///< + args[0]
  kAnd,      ///< args[0] and args[1]
  kOr,       ///< args[0] or args[1]
  kBinary,   ///< args[0] name args[1]
  kCompare,  ///< args[0] ops[0] args[1] ops[1] args[2] …
  kConcat,   ///< args[0] ~ args[1] ~ …
  kCond,     ///< args[0] if args[1] else args[2] (may be null)
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

/// A node of an expression; which fields are used depends on the kind.
struct Expr {
  ExprKind kind = ExprKind::kConst;
  int line = 1;
  int height = 1;  ///< of the tree below, itself included
  std::string name;
  Value constant;
  std::vector<ExprPtr> args;
  std::vector<std::pair<std::string, ExprPtr>> keywords;
  std::vector<std::string> ops;
};

enum class NodeKind { kText, kOutput, kIf, kFor, kSet, kSetBlock, kMacro, kBreak, kContinue };

struct Node;
using Body = std::vector<std::unique_ptr<Node>>;

/// A macro with its parameters; a default may be null.
struct MacroNode {
  std::string name;
  std::vector<std::pair<std::string, ExprPtr>> parameters;
  Body body;
};

/// A statement.
struct Node {
  NodeKind kind = NodeKind::kText;
  int line = 1;
  std::string text;  ///< kText
  /// kOutput, kSet: value; kFor: what is iterated; kSetBlock: filters on an empty constant, or null
  ExprPtr expr;
  ExprPtr condition;                 ///< kFor: the inline if, or null
  std::vector<std::string> targets;  ///< kFor, kSet, kSetBlock: names that are bound
  std::string attribute;             ///< kSet: attribute of targets[0] (a namespace); empty = none
  std::vector<std::pair<ExprPtr, Body>> branches;  ///< kIf; a null condition is else
  Body body;                                       ///< kFor, kSetBlock
  Body otherwise;                                  ///< kFor: else
  MacroNode macro;                                 ///< kMacro
};

}  // namespace rematch::jinja
