#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "model/checkpoint/model_dir.h"
#include "model/families/family.h"
#include "model/families/qwen2_5vl/qwen2_5vl.h"
#include "model/families/qwen3_5/qwen3_5.h"
#include "model/families/qwen3vl/qwen3vl.h"

namespace rematch {
namespace {

std::vector<Family>& table() {
  static std::vector<Family> families{qwen3vl_family(), qwen2_5vl_family(), qwen3_5_family()};
  return families;
}

const Family& find_family(JsonFields root, JsonOrigin origin) {
  const std::string model_type = root.text_or("model_type", "");
  const Strings architectures = root.texts("architectures");
  Strings known;
  for (const Family& family : families()) {
    const bool has_architecture = std::ranges::any_of(architectures, [&](const std::string& name) {
      return contains(family.architectures, name);
    });
    if (model_type.empty() ? has_architecture : model_type == family.model_type) return family;
    known.push_back(
        fmt::format("{} checkpoint (model_type \"{}\")", family.title, family.model_type));
  }
  origin.fix = fmt::format("use a {}", join(known, " or a "));
  throw_json_error(origin, "model_type",
                   model_type.empty() ? "absent" : fmt::format("\"{}\"", model_type));
}

struct ConfigFile {
  explicit ConfigFile(const std::string& model_dir) {
    require_model_dir(model_dir);
    origin.path = join_path(model_dir, "config.json");
    config = read_json_file(origin.path);
  }
  const Family& family() const { return find_family(JsonFields(config, origin), origin); }

  JsonOrigin origin{
      .path = "",
      .error = "{} in config.json is invalid",
      .fix = "use a checkpoint of a supported model with the config.json that came with it",
      .null_is_absent = true};
  Json config;
};

}  // namespace

const std::vector<Family>& families() { return table(); }

void register_family(Family family) { table().push_back(std::move(family)); }

ModelDescription describe_model(const std::string& model_dir) {
  const ConfigFile file(model_dir);
  return file.family().describe(file.config, file.origin);
}

std::string stock_answer_format(const std::string& model_dir) {
  return ConfigFile(model_dir).family().stock_answer_format;
}

}  // namespace rematch
