#include "ranks/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ranks/cuda_state.h"
#include "support/capture.h"

namespace rematch {
namespace {

using ::testing::HasSubstr;

const at::Device kGpu(at::kCUDA, 1);

}  // namespace

TEST(MissingDevice, ExplainsWhyItIsMissing) {
  const std::tuple<CudaState, const char*, const char*> cases[] = {
      {{}, "this torch build has no CUDA", "install a CUDA build"},
      {{.built_for = 13000}, "CUDA 13.0, but no NVIDIA driver", "a container with a GPU"},
      {{.built_for = 13000, .driver = "535.104.05"},
       "driver 535.104.05 is too old: torch is built for CUDA 13.0, which needs 580",
       "update the driver"},
      {{.built_for = 12080, .driver = "535.104.05", .visible = ""},
       "CUDA_VISIBLE_DEVICES=\"\"",
       "unset CUDA_VISIBLE_DEVICES"},
      {{.built_for = 13000, .driver = "580.65", .visible = "7"},
       "no device is found; CUDA_VISIBLE_DEVICES=\"7\"",
       "name devices that exist"},
      {{.built_for = 13000, .num_devices = 2, .driver = "580.65"},
       "CUDA devices found: 2, the last is cuda:1",
       "name one of them"},
      {{.built_for = 13000, .driver = "580.65"}, "CUDA 13.0, the driver is 580.65", "nvidia-smi"},
  };
  for (const auto& [state, what, fix] : cases) {
    const Problem problem = missing_device("cuda:3", state);
    EXPECT_EQ(problem.where, "--device cuda:3");
    EXPECT_THAT(problem.what, HasSubstr(what));
    EXPECT_THAT(problem.fix, HasSubstr(fix));
  }
}

TEST(MissingDevice, IsThrownForADeviceThatNoMachineHas) {
  const UserError error = test::catch_user_error([] { choose_device("cuda:99"); });
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
  EXPECT_THAT(error.what(), HasSubstr("--device cuda:99"));
  EXPECT_THROW(choose_device("cuda:"), UserError);
  const UserError number = test::catch_user_error([] { choose_device("99"); });
  EXPECT_THAT(number.what(), HasSubstr("--device cuda:99"));
  EXPECT_EQ(rank_device("gpu", {.size = 2, .rank = 1, .local_rank = 1}, 2), "cuda:1");
}

TEST(DtypeOn, RefusesBfloat16OnAGpuThatLacksIt) {
  const auto yes = [](const at::Device&) { return true; };
  const auto no = [](const at::Device&) { return false; };
  EXPECT_EQ(dtype_on(kGpu, ModelDtype::kAuto, yes), at::kBFloat16);
  EXPECT_EQ(dtype_on(kGpu, ModelDtype::kFloat32, no), at::kFloat);
  EXPECT_EQ(dtype_on(at::kCPU, ModelDtype::kAuto, no), at::kFloat);
  EXPECT_EQ(dtype_on(at::kCPU, ModelDtype::kBfloat16), at::kBFloat16);
  for (const ModelDtype wish : {ModelDtype::kAuto, ModelDtype::kBfloat16}) {
    const UserError error = test::catch_user_error([&] { dtype_on(kGpu, wish, no); });
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_THAT(error.what(), HasSubstr("model.torch_dtype: float32"));
  }
}

}  // namespace rematch
