#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "learn/data/stock_answer.h"

namespace rematch {

/// The user text of training on stock digits without `custom.user_prompt`.
std::string usual_stock_text();

/// Options that the commands between records and conversations share.
struct StockArguments {
  std::string scale, model_dir;  ///< no scale: relative, unless the numbers look like pixels
  std::string usual_text = usual_stock_text();
};

/// Adds --scale, --model and --prompt.
/// @param reads  also units that are only read
void add_stock_options(CLI::App& app, StockArguments& arguments, const char* prompt_help,
                       bool reads);

/// The unit of the numbers.
/// @throws UserError for a model directory that cannot be read
StockScale scale_of(const StockArguments& arguments);

}  // namespace rematch
