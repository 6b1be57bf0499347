// `rematch doctor [CONFIG]`
#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/terminal_text.h"
#include "engine/ranks/device.h"
#include "engine/ranks/group.h"
#include "engine/ranks/nccl_group.h"
#include "engine/rollout/engine_factory.h"
#include "engine/rollout/vllm/plugin_loader.h"
#include "program/assembly/vllm_setup.h"
#include "program/cli/arguments.h"
#include "program/cli/command_set.h"
#include "program/cli/standard_output.h"
#include "program/config/config.h"

namespace rematch {
namespace {

struct DoctorArguments {
  std::string config_path;  ///< empty: default settings
  std::string device = "auto";
};

std::string or_none(const std::string& text) { return text.empty() ? "none" : text; }

// Places in which the vLLM backend looks, found or not.
void print_environment(const std::string& python) {
  const Interpreter found = find_interpreter(python);
  print("  plug-in      {}\n", or_none(plugin_path()));
  if (!found.problem.empty()) {
    print("  interpreter  {}: {}\n", found.command, found.problem);
    return;
  }
  print("  interpreter  {} (Python {}, library {})\n", found.executable, found.python_version,
        or_none(found.libpython));
  print("  its torch    {} (this program: {})\n", or_none(found.torch_version),
        REMATCH_TORCH_VERSION);
  print("  its vllm     {}\n", or_none(found.vllm_version));
}

// One backend: a line, followed by what is missing. True when it can run.
bool examine(const std::string& backend, const VllmOptions& vllm) {
  try {
    check_backend_available(backend, vllm);
    print("{:7} ready\n", backend);
    return true;
  } catch (const UserError& error) {
    print("{:7} cannot run here\n", backend);
    for (const Problem& problem : error.problems())
      std::cout << wrapped("  " + format_problem(problem), 9);
    return false;
  }
}

/// The line on how several ranks would exchange gradients.
std::string exchange_text(const at::Device& device) {
  if (!device.is_cuda()) return "exchange gradients over Gloo, in host memory";
  if (has_nccl()) return "exchange gradients over NCCL, from GPU to GPU";
  return wrapped("several need NCCL, which this build lacks: " + nccl_problem(), 8);
}

/// The backend that a configuration chooses.
int examine_choice(const DoctorArguments& arguments, const at::Device& device) {
  const Settings settings = load_config(arguments.config_path, {}).settings;
  if (!settings.is_stage_2() && !settings.rollouts) {
    std::cout << "this configuration needs no backend\n";
    return 0;
  }
  const VllmOptions vllm = make_vllm_options(settings, device, alone());
  const bool runs = examine(settings.backend, vllm);
  if (settings.backend == "vllm") print_environment(vllm.python);
  return runs ? 0 : exit_code(ErrorKind::kEnvironment);
}

/// @return 0 when the chosen backend (without a configuration: any) can run, else 4
int run_doctor(const DoctorArguments& arguments) {
  const at::Device device = choose_device(arguments.device);
  use_device(device);
  print("device  {}\n", describe_device(device));
  print("ranks   {}\n", exchange_text(device));
  if (!arguments.config_path.empty()) return examine_choice(arguments, device);
  VllmOptions vllm{.on_cpu = !device.is_cuda()};
  vllm.tensor_parallel_size = 1;
  bool any = false;
  for (const std::string& backend : rollout_backends().names()) {
    any = examine(backend, vllm) || any;
    if (backend == "vllm") print_environment(vllm.python);
  }
  return any ? 0 : exit_code(ErrorKind::kEnvironment);
}

}  // namespace

Command add_doctor_command(CLI::App& app) {
  const auto [command, doctor, arguments] = make_command(
      app, "doctor", "report which rollout backends can run here, and what the others lack",
      run_doctor, {"", "my.yaml --device cuda"});
  doctor.add_option("CONFIG", arguments.config_path,
                    "YAML configuration whose vllm.* settings are used");
  add_device(doctor, arguments.device);
  return command;
}

}  // namespace rematch
