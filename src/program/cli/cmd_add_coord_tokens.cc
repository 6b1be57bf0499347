// `rematch add-coord-tokens MODEL OUT [--untie]`
#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "base/observe/terminal.h"
#include "engine/ranks/ranks.h"
#include "model/add_coord_tokens.h"
#include "model/checkpoint/hf_dir.h"
#include "program/cli/command_set.h"
#include "program/cli/standard_output.h"

namespace rematch {
namespace {

struct CoordTokenArguments {
  std::string model_dir, out_dir;
  bool untie = false;
};

int run_add_coord_tokens(const CoordTokenArguments& arguments) {
  require_alone("rematch add-coord-tokens");
  const auto& [model_dir, out_dir, untie] = arguments;
  const AddedCoordTokens added = add_coord_tokens(model_dir, out_dir, untie);
  if (const std::string text = spare_weights_warning(model_dir); !text.empty())
    Terminal::standard()->warn(text);
  print("<|coord_0|> … <|coord_999|> have ids {} … {}\n", added.first_id, added.first_id + 999);
  if (added.new_rows == added.old_rows)
    print("the embedding keeps its {} rows: enough were unused\n", added.old_rows);
  else
    print("the embedding grew from {} to {} rows\n", added.old_rows, added.new_rows);
  if (untie)
    std::cout << (added.untied ? "the head is now a separate matrix\n"
                               : "the head was a separate matrix already\n");
  print("wrote {}\n", out_dir);
  return 0;
}

}  // namespace

Command add_coord_tokens_command(CLI::App& app) {
  const auto [added, command, arguments] = make_command(
      app, "add-coord-tokens",
      "add the 1000 coord tokens <|coord_0|> … <|coord_999|> to a stock model directory",
      run_add_coord_tokens, {"stock base", "models/stock models/base"},
      /*writes_files=*/true);
  command.add_option("MODEL", arguments.model_dir, "Hugging Face directory")->required();
  command.add_option("OUT", arguments.out_dir, "directory to create")->required();
  command.add_flag("--untie", arguments.untie, "give a model with tied embeddings a separate head");
  return added;
}

}  // namespace rematch
