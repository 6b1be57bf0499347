// Derives `training.zero_stage` from the ZeRO stage of a `deepspeed` section.
#include <fmt/core.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "config/convert.h"
#include "config/rules.h"

namespace rematch {
namespace {

const std::string kStage = "training.zero_stage";

/// DeepSpeed configurations that ms-swift knows by name; offloading is ignored.
constexpr std::array<std::pair<const char*, int64_t>, 6> kNames{{{"zero0", 0},
                                                                 {"zero1", 1},
                                                                 {"zero2", 2},
                                                                 {"zero3", 3},
                                                                 {"zero2_offload", 2},
                                                                 {"zero3_offload", 3}}};

/// The ZeRO stage of a DeepSpeed configuration; nullopt if it has none.
std::optional<int64_t> read_config_stage(const Json& config, const std::string& where) {
  if (config.is_null()) return std::nullopt;
  if (!config.is_object()) {
    throw UserError(
        ErrorKind::kConfig,
        {.error = "`deepspeed` is not a DeepSpeed configuration",
         .where = where,
         .what = fmt::format("it is {}, not a mapping", config.type_name()),
         .fix = fmt::format("remove it and set `{}: 0`, 1 or 2, or name zero0, zero1 or zero2",
                            kStage)});
  }
  const auto zero = config.find("zero_optimization");
  if (zero == config.end() || !zero->is_object() || !zero->contains("stage")) return std::nullopt;
  const Json& stage = (*zero)["stage"];
  if (stage.is_number_integer() && stage.get<int64_t>() >= 0 && stage.get<int64_t>() <= 3)
    return stage.get<int64_t>();
  throw UserError(
      ErrorKind::kConfig,
      {.error = "`zero_optimization.stage` is not a ZeRO stage",
       .where = where,
       .what = fmt::format("it is {}", stage.dump()),
       .fix = fmt::format("make it 0, 1 or 2, or remove `deepspeed` and set `{}`", kStage)});
}

std::optional<int64_t> read_named_stage(const std::string& text, const std::string& where) {
  for (const auto& [name, stage] : kNames) {
    if (text == name) return stage;
  }
  if (!text.empty() && text.front() == '{')
    return read_config_stage(parse_json(text, where), where);
  if (text.ends_with(".json")) return read_config_stage(read_json_file(text), text);
  throw UserError(
      ErrorKind::kConfig,
      {.error = fmt::format("unknown value `deepspeed: {}`", text),
       .where = where,
       .what = "it is neither a name of a ZeRO configuration nor a JSON file",
       .fix = fmt::format(
           "remove it and set `{}: 0`, 1 or 2, or name zero0, zero1, zero2 or a .json file",
           kStage)});
}

/// Reads the ZeRO stage; nullopt if there is none.
/// @param value  a name, a file, a DeepSpeed configuration, or {enabled, config: one of these}
std::optional<int64_t> read_stage(const Json& value, const std::string& where) {
  const Json& config = value.is_object() && value.contains("config") ? value["config"] : value;
  return config.is_string() ? read_named_stage(config.get<std::string>(), where)
                            : read_config_stage(config, where);
}

}  // namespace

void apply_deepspeed_rules(Draft& config) {
  std::string decided_by = config.is_given(kStage) ? kStage : "";
  for (const std::string key : {"deepspeed", "training.deepspeed"}) {
    const Node* node = config.find_written(key);
    if (node == nullptr || is_off(*node)) continue;
    const std::string where = node->origin.text();
    try {
      const std::optional<int64_t> stage = read_stage(untyped_json(*node), where);
      if (!stage) continue;
      if (*stage == 3) {
        config.problems.push_back(
            {fmt::format("`{}` asks for ZeRO stage 3, which is not supported", key), where,
             "parameters are not sharded",
             "use zero2, which shards optimizer state and gradients across ranks"});
      } else if (decided_by.empty()) {
        config.derive(kStage, *stage, key);
        decided_by = key;
      } else if (config.integer(kStage) != *stage) {
        config.problems.push_back(
            {fmt::format("`{}` and `{}` contradict each other", key, decided_by), where,
             fmt::format("ZeRO stage {} here, {} there ({})", *stage, config.integer(kStage),
                         config.origin(kStage)),
             "remove one of the two"});
      }
    } catch (const UserError& error) {
      config.problems.insert(config.problems.end(), error.problems().begin(),
                             error.problems().end());
    }
  }
}

}  // namespace rematch
