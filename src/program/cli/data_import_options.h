#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "program/cli/stock_arguments.h"
#include "tools/import/foreign.h"

namespace rematch {

/// Which options a from-… command has besides those of all.
struct ImportTraits {
  bool has_outlines = false;     ///< --polygons
  bool has_names = false;        ///< --names
  bool has_box_forms = false;    ///< --boxes
  bool has_label_files = false;  ///< --missing-labels-are-empty
  /// --scale, --model, --prompt, --label-from-prompt, --empty-answer; other sources have
  /// --prompt-classes, --negatives
  bool has_conversations = false;
};

/// Arguments of the from-… commands.
struct ImportArguments {
  Strings sources;
  std::string out_dir, box_form;
  ImportOptions options;
  StockArguments stock;
};

/// Adds the options of a from-… command.
void add_import_options(CLI::App& app, ImportArguments& arguments, const ImportTraits& traits);

/// The options as the readers take them.
/// @throws UserError (configuration)
ImportOptions finish_import_options(const ImportArguments& arguments, const ImportTraits& traits);

}  // namespace rematch
