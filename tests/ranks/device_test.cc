#include "engine/ranks/device.h"

#include <ATen/Context.h>
#include <c10/core/AllocatorConfig.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/ranks/cuda_state.h"
#include "engine/ranks/ddp_choice.h"
#include "engine/ranks/nccl_group.h"
#include "support/capture.h"
#include "support/pretend_device.h"

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

TEST(RankDevice, IsTheOnlyOneThatSlurmShowsToATask) {
  World world{.size = 4, .rank = 3, .local_size = 4, .local_rank = 3};
  EXPECT_THROW(rank_device("auto", world, 1), UserError) << "four ranks would share it";
  world.sees_own_gpu = true;
  EXPECT_EQ(rank_device("auto", world, 1), "cuda:0");
  EXPECT_EQ(rank_device("auto", world, 4), "cuda:3");
}

TEST(UseDevice, TurnsOffCudnnsAttention) {
  at::globalContext().setSDPUseCuDNN(true);
  use_device(at::kCPU);
  EXPECT_FALSE(at::globalContext().userEnabledCuDNNSDP());
}

TEST(UseDevice, LetsSegmentsOfTheAllocatorGrowUnlessVllmSharesThem) {
  const auto grows = [] {
    return c10::CachingAllocator::AcceleratorAllocatorConfig::use_expandable_segments();
  };
  ::unsetenv("PYTORCH_ALLOC_CONF");
  ::unsetenv("PYTORCH_CUDA_ALLOC_CONF");
  const at::Device device = test::pretend_device();
  use_device(device, /*with_vllm=*/true);
  EXPECT_FALSE(grows());
  ::setenv("PYTORCH_ALLOC_CONF", "max_split_size_mb:100", 1);
  use_device(device);
  EXPECT_FALSE(grows()) << "the user's settings";
  ::unsetenv("PYTORCH_ALLOC_CONF");
  use_device(device);
  EXPECT_TRUE(grows());
  use_device(device, /*with_vllm=*/true);
  EXPECT_FALSE(grows()) << "the ranks were connected before the program knew of vLLM";
}

TEST(ChooseDdpBackend, TakesNcclIfEveryRankHasAGpuOfItsOwn) {
  using enum DdpBackend;
  const auto place = [](int index, const char* host = "a", const char* visible = "") {
    return gpu_place(at::Device(at::kCUDA, static_cast<at::DeviceIndex>(index)), host, visible);
  };
  EXPECT_EQ(choose_ddp_backend(kAuto, {place(0), place(1)}), kNccl);
  EXPECT_EQ(choose_ddp_backend(kAuto, {place(0), place(0, "b")}), kNccl) << "two hosts";
  EXPECT_EQ(choose_ddp_backend(kAuto, {place(0, "a", "0"), place(0, "a", "1")}), kNccl);
  EXPECT_EQ(choose_ddp_backend(kAuto, {place(0), place(0)}), kGloo) << "they share one";
  EXPECT_EQ(choose_ddp_backend(kAuto, {place(0), gpu_place(at::kCPU, "a", "")}), kGloo);
  EXPECT_EQ(choose_ddp_backend(kAuto, {"", ""}), kGloo) << "no GPUs";
  EXPECT_EQ(choose_ddp_backend(kGloo, {place(0), place(1)}), kGloo);
  EXPECT_EQ(choose_ddp_backend(kNccl, {"", ""}), kNccl) << "refused later, with the reason";
}

TEST(ChooseDdpBackend, GpusWithoutNcclAreRefusedWithBothWaysOut) {
  if (has_nccl()) GTEST_SKIP() << "this build has NCCL";
  try {
    require_nccl(at::Device(at::kCUDA, 0));
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    const std::string fix = error.problems().front().fix;
    EXPECT_NE(fix.find("CUDA wheel of torch"), std::string::npos) << fix;
    EXPECT_NE(fix.find("ddp_backend: gloo"), std::string::npos) << fix;
  }
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
