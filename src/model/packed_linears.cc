#include "model/packed_linears.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace rematch {
namespace {

bool names(const std::string& entry, const std::string& module) {
  return ("." + module + ".").find("." + entry + ".") != std::string::npos;
}

}  // namespace

bool is_packed_at_load(const FourBitSettings& options, const std::string& head,
                       const std::string& module) {
  const Strings& skipped = options.skip_modules;
  return module != head &&
         std::ranges::none_of(skipped, [&](const auto& entry) { return names(entry, module); });
}

void check_skip_modules(const FourBitSettings& options, const ModelDescription& model) {
  Strings modules{model.text.embedding};
  for (const LinearDescription& linear : model.linears()) modules.push_back(linear.module);
  for (const std::string& entry : options.skip_modules) {
    if (std::ranges::any_of(modules,
                            [&](const std::string& module) { return names(entry, module); }))
      continue;
    constexpr std::string_view kWeight = ".weight";
    const bool is_weight = entry.ends_with(kWeight);
    throw config_error(
        {.error = fmt::format("`{}` names no module of the model", entry),
         .where = "model.llm_int8_skip_modules",
         .what = fmt::format("modules are named by whole components of their path, e.g. {}",
                             modules.back()),
         .fix = is_weight ? fmt::format("leave out `.weight`: {}",
                                        entry.substr(0, entry.size() - kWeight.size()))
                          : "correct the name (`visual`, `q_proj`), or remove it"});
  }
}

void refuse_packed_in_full(const std::string& parameter, ErrorKind kind, const std::string& where) {
  throw UserError(kind, {.error = fmt::format("{} cannot be trained in full", parameter),
                         .where = where,
                         .what = "its weight is in 4 bits",
                         .fix = "give it an adapter (`tuner.target_modules`), or keep it in full: "
                                "name it in `model.llm_int8_skip_modules`"});
}

}  // namespace rematch
