// Opens librematch_nccl.so (nccl_group.cc), which is built against a CUDA wheel of torch, while the
// program itself runs with any.
#include <dlfcn.h>
#include <fmt/core.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <filesystem>
#include <string>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "engine/ranks/nccl_group.h"
#include "engine/ranks/nccl_plugin.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

struct Library {
  NcclPluginMake make = nullptr;
  std::string problem;  ///< empty if it can be used
};

Library open_library() {
  std::error_code ignored;
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& directory : {here, here / "../lib", here / "../../lib"}) {
    const fs::path file = directory / kNcclPluginFile;
    if (!path_exists(file)) continue;
    void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return {.problem = dlerror()};
    const auto abi = reinterpret_cast<NcclPluginAbi>(dlsym(library, "rematch_nccl_plugin_abi"));
    if (abi == nullptr || abi() != kNcclPluginAbi)
      return {.problem = file.string() + " is from a different build"};
    return {.make = reinterpret_cast<NcclPluginMake>(dlsym(library, "rematch_nccl_plugin_make"))};
  }
  return {.problem = fmt::format("{} is not next to the program: nccl.h, the CUDA headers or "
                                 "libtorch_cuda were missing when it was built",
                                 kNcclPluginFile)};
}

const Library& library() {
  static const Library opened = open_library();
  return opened;
}

}  // namespace

bool has_nccl() { return library().make != nullptr; }
std::string nccl_problem() { return library().problem; }

std::unique_ptr<Group> make_nccl_group(std::unique_ptr<Group> host_group,
                                       c10::intrusive_ptr<c10d::Store> store, at::Device device,
                                       std::chrono::seconds timeout) {
  REMATCH_CHECK(has_nccl(), "require_nccl() refuses this build");
  std::unique_ptr<Group> group;
  library().make({.host_group = std::move(host_group),
                  .store = std::move(store),
                  .device = device,
                  .timeout = timeout},
                 group);
  return group;
}

}  // namespace rematch
