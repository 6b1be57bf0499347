// `rematch add-coord-tokens MODEL OUT [--untie]`
#include <fmt/core.h>

#include <iostream>

#include "checkpoint/hf_dir.h"
#include "cli/commands.h"
#include "ranks/ranks.h"
#include "model/add_coord_tokens.h"

namespace rematch {

int run_add_coord_tokens(const std::string& model_dir, const std::string& out_dir, bool untie) {
  require_alone("rematch add-coord-tokens");
  const AddedCoordTokens added = add_coord_tokens(model_dir, out_dir, untie);
  if (const std::string text = spare_weights_warning(model_dir); !text.empty())
    std::cerr << "warning: " << text << "\n";
  std::cout << fmt::format("<|coord_0|> … <|coord_999|> have ids {} … {}\n", added.first_id,
                           added.first_id + 999);
  std::cout << (added.new_rows == added.old_rows
                    ? fmt::format("the embedding keeps its {} rows: enough were unused\n",
                                  added.old_rows)
                    : fmt::format("the embedding grew from {} to {} rows\n", added.old_rows,
                                  added.new_rows));
  if (untie)
    std::cout << (added.untied ? "the head is now a separate matrix\n"
                               : "the head was a separate matrix already\n");
  std::cout << fmt::format("wrote {}\n", out_dir);
  return 0;
}

}  // namespace rematch
