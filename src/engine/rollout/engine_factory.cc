#include "engine/rollout/engine_factory.h"

#include <fmt/core.h>

#include <functional>

#include "base/error.h"
#include "base/text.h"

namespace rematch {
namespace {

std::unique_ptr<RolloutEngine> make_hf_engine(const EngineParts& parts,
                                              const GenerateOptions& options) {
  return std::make_unique<HfEngine>(parts.model, parts.tokenizer, parts.pixels, options);
}

bool complete_table() {
  Choices<BackendRow>& backends = rollout_backends();
  backends.edit("vllm").make = make_vllm_engine;
  backends.edit("vllm").check = check_vllm_available;
  backends.edit("hf").make = make_hf_engine;
  backends.edit("native").make = make_native_engine;
  return true;
}

const BackendRow& find_backend(const std::string& name) {
  static const bool is_complete = complete_table();
  REMATCH_CHECK(is_complete);
  return rollout_backends().find(name);
}

// Rejects a backend for which `can` is false, and names the others.
void require(const std::string& backend, const std::function<bool(const BackendRow&)>& can,
             const std::string& what) {
  if (can(find_backend(backend))) return;
  Strings able;
  for (const BackendRow& row : rollout_backends().rows()) {
    if (can(row)) able.push_back("`" + row.name + "`");
  }
  throw config_error(
      {.error = fmt::format("the rollout backend `{}` cannot decode this model", backend),
       .where = "rollout_backend",
       .what = what,
       .fix = fmt::format("set rollout_backend (predict: --backend) to {}", join(able, " or "))});
}

}  // namespace

void check_backend_available(const std::string& backend, const VllmOptions& vllm) {
  const BackendRow& row = find_backend(backend);
  if (row.check) row.check(vllm);
}

void check_backend_decodes(const std::string& backend, const TextDescription& text,
                           bool in_four_bits) {
  if (const DeltaDescription* const delta = text.delta()) {
    require(
        backend, [](const BackendRow& row) { return row.has_delta_rule; },
        fmt::format("{} of its {} decoder layers use the gated delta rule, which this backend does "
                    "not have or is not tested with",
                    text.num_delta_layers(), text.num_layers()));
    require(
        backend,
        [width = delta->conv_kernel](const BackendRow& row) {
          return row.has_delta_rule && (row.delta_kernel == 0 || row.delta_kernel == width);
        },
        fmt::format("its linear_conv_kernel_dim is {}, which this backend does not have",
                    delta->conv_kernel));
  }
  if (in_four_bits) {
    require(
        backend, [](const BackendRow& row) { return !row.holds_own_weights; },
        "its weights are in 4 bits, and this backend would need a merged copy in full precision");
  }
}

std::unique_ptr<RolloutEngine> make_engine(const std::string& backend, const EngineParts& parts,
                                           const GenerateOptions& options) {
  check_backend_available(backend, parts.vllm);
  check_backend_decodes(backend, parts.model->description().text, parts.model->num_packed() > 0);
  const BackendRow& row = find_backend(backend);
  std::unique_ptr<RolloutEngine> engine = row.make(parts, options);
  REMATCH_CHECK(engine->holds_own_weights() == row.holds_own_weights, backend);
  return engine;
}

}  // namespace rematch
