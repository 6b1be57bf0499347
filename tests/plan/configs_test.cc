// Every configuration of configs/ fits the machine and the model that its first lines name.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/json.h"
#include "plan/models.h"
#include "program/cli/cmd_plan.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

/// The machine that a configuration names.
struct Machine {
  const char* model;   ///< of kPublicModels; empty: the demonstration's
  double gpu_gib = 0;  ///< of one GPU; 0: a CPU
  int num_ranks = 1;
};

const std::map<std::string, Machine> kMachines = {
    {"stage2_vllm_4gpu.yaml", {"4B", 80, 4}},
    {"dora/stage2_8b.yaml", {"8B", 80, 4}},
    {"dora/stage2_demo.yaml", {""}},
    {"demo/common.yaml", {""}},
    {"demo/stage1.yaml", {""}},
    {"demo/stage1_labels.yaml", {""}},
    {"demo/stage1_more.yaml", {""}},
    {"demo/stage1_unordered.yaml", {""}},
    {"demo/stage2.yaml", {""}},
    {"demo/stage2_buffered.yaml", {""}},
    {"demo/stage2_vllm.yaml", {""}},
};

std::string model_directory(const std::string& name, const test::TempDir& dir) {
  for (const test::PublicModel& model : test::kPublicModels) {
    if (name != model.name) continue;
    dir.write("config.json", test::config_of(model));
    return dir.path();
  }
  return test::source_path("demo/model");
}

}  // namespace

TEST(ShippedConfigurations, EachHasAMachineHere) {
  const fs::path root = test::source_path("configs");
  size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".yaml") continue;
    ++count;
    EXPECT_TRUE(kMachines.count(fs::relative(entry.path(), root).string())) << entry.path();
  }
  EXPECT_EQ(count, kMachines.size());
}

TEST(ShippedConfigurations, EachFitsTheMachineItNames) {
  for (const auto& [file, machine] : kMachines) {
    if (file == "demo/common.yaml") continue;  // a part of the others
    SCOPED_TRACE(file);
    const test::TempDir dir;
    PlanArguments arguments{.path = test::source_path("configs/" + file),
                            .overrides = {"model.model=" + model_directory(machine.model, dir)},
                            .num_ranks = machine.num_ranks,
                            .json = true};
    if (machine.gpu_gib > 0) arguments.gpu_memory_gib = machine.gpu_gib;
    std::ostringstream out;
    ASSERT_EQ(run_plan(arguments, out), 0);
    EXPECT_EQ(parse_json(out.str(), "plan")["fits"], true) << out.str();
  }
}

}  // namespace rematch
