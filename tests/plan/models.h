#pragma once
#include <cstdint>
#include <string>

#include "model/families/description.h"
#include "model/families/family.h"
#include "support/paths.h"
#include "tools/plan/plan.h"
#include "tools/plan/request.h"

namespace rematch::test {

inline std::string tiny_dir(const std::string& name = "tiny_tied") {
  return source_path("tests/golden/model/" + name);
}

/// Sizes of a public checkpoint of the family, as its config.json gives them.
struct PublicModel {
  const char* name;
  int64_t hidden, intermediate, num_layers, num_heads;
  bool is_tied;
  int64_t vision_depth, vision_hidden, vision_intermediate;
  const char* taps;
  /// transformers' num_parameters() on the meta device: of the model, of its `visual`
  int64_t total, vision;
};

inline constexpr PublicModel kPublicModels[] = {
    {"2B", 2048, 6144, 28, 16, true, 24, 1024, 4096, "[5, 11, 17]", 2127532032, 406957056},
    {"4B", 2560, 9728, 36, 32, true, 24, 1024, 4096, "[5, 11, 17]", 4437815808, 415347712},
    {"8B", 4096, 12288, 36, 32, false, 27, 1152, 4304, "[8, 16, 24]", 8767123696, 576388336},
    {"32B", 5120, 25600, 64, 64, false, 27, 1152, 4304, "[8, 16, 24]", 33357390064, 595266800},
};

/// config.json of such a checkpoint.
std::string config_of(const PublicModel& model);

/// Full fine-tuning of a public model on a GPU of this many GiB: one sample of 4096 tokens a row,
/// 16 rows a step, native rollouts.
PlanRequest request_of(const PublicModel& model, double gpu_gib);
/// The same of 8B.
PlanRequest eight_b(double gpu_gib = 80);

/// Bytes of a row of a phase; 0 without such a row.
int64_t bytes_of(const MemoryPlan& plan, const std::string& phase, const std::string& name);

}  // namespace rematch::test
