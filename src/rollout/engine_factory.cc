#include "rollout/engine_factory.h"

#include <fmt/core.h>

#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace rematch {
namespace {

struct BackendRow {
  const char* name;
  bool holds_own_weights;
  void (*check)(const VllmOptions&);
  std::unique_ptr<RolloutEngine> (*make)(const EngineParts&, const GenerateOptions&);
};

std::unique_ptr<RolloutEngine> make_hf_engine(const EngineParts& parts, const GenerateOptions& options) {
  return std::make_unique<HfEngine>(parts.model, parts.tokenizer, parts.pixels, options);
}

const std::vector<BackendRow>& backends() {
  static const std::vector<BackendRow> rows{
      {"hf", false, [](const VllmOptions&) {}, make_hf_engine},
      {"vllm", true, check_vllm_available, make_vllm_engine},
      {"native", false, [](const VllmOptions&) {}, make_native_engine},
  };
  return rows;
}

const BackendRow& find_backend(const std::string& name) {
  for (const BackendRow& row : backends()) {
    if (name == row.name) return row;
  }
  const std::vector<std::string> names = backend_names();
  const std::vector<std::string> near = near_names(name, names, 1);
  throw UserError(ErrorKind::kConfig,
                  {.error = fmt::format("unknown rollout backend \"{}\"", name),
                   .where = "custom.extra.rollout_matching.rollout_backend",
                   .what = fmt::format("known: {}", join(names, ", ")),
                   .fix = near.empty() ? "use rollout_backend: hf" : fmt::format("did you mean \"{}\"?", near.front())});
}

}  // namespace

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const BackendRow& row : backends()) names.emplace_back(row.name);
  return names;
}

void check_backend_available(const std::string& backend, const VllmOptions& vllm) { find_backend(backend).check(vllm); }

bool backend_holds_own_weights(const std::string& backend) { return find_backend(backend).holds_own_weights; }

std::unique_ptr<RolloutEngine> make_engine(const std::string& backend, const EngineParts& parts, const GenerateOptions& options) {
  const BackendRow& row = find_backend(backend);
  row.check(parts.vllm);
  std::unique_ptr<RolloutEngine> engine = row.make(parts, options);
  REMATCH_CHECK(engine->holds_own_weights() == row.holds_own_weights, backend);
  return engine;
}

}  // namespace rematch
