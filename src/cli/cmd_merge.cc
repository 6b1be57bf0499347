// `rematch merge ADAPTER_DIR --out DIR [--model BASE] [--dtype DTYPE]`
#include <fmt/core.h>

#include <filesystem>
#include <iostream>

#include "text/stored_prompt.h"
#include "base/output_file.h"
#include "checkpoint/hf_dir.h"
#include "cli/commands.h"
#include "ranks/ranks.h"
#include "model/merge_adapter.h"
#include "resume/run_links.h"

namespace rematch {

int run_merge(const MergeArguments& arguments) {
  require_alone("rematch merge");
  const NamedModel adapter = find_model(arguments.adapter_dir);
  if (!adapter.note.empty()) std::cerr << adapter.note << "\n";
  MergeOptions options{.adapter_dir = adapter.path,
                       .base_dir = arguments.model_dir,
                       .output_dir = arguments.output_dir,
                       .dtype = std::nullopt};
  if (!arguments.dtype.empty())
    options.dtype = arguments.dtype == "bfloat16" ? at::kBFloat16 : at::kFloat;
  const MergedAdapter merged = merge_adapter(options);
  const std::string prompt = join_path(options.adapter_dir, kStoredPromptFile);
  if (std::filesystem::exists(prompt))
    write_output(join_path(options.output_dir, kStoredPromptFile), {prompt}, read_file(prompt));
  if (const std::string text = spare_weights_warning(merged.base_dir); !text.empty())
    std::cerr << "warning: " << text << "\n";
  std::cout << fmt::format("merged {} layers of {} + {} into {}", merged.num_layers,
                           merged.base_dir, options.adapter_dir, options.output_dir);
  std::cout << (merged.num_replaced > 0
                    ? fmt::format("; {} parameters replaced by the adapter's own",
                                  merged.num_replaced)
                    : "");
  std::cout << (merged.num_rows > 0
                    ? fmt::format("; the rows of {} tokens replaced\n", merged.num_rows)
                    : "\n");
  if (merged.untied)
    std::cout << "the adapter trains embedding and head apart: they are tied no longer\n";
  return 0;
}

}  // namespace rematch
