#include <fmt/core.h>

#include <ostream>

#include "assembly/vllm_setup.h"
#include "base/error.h"
#include "cli/commands.h"
#include "config/config.h"
#include "ranks/device.h"
#include "ranks/group.h"
#include "rollout/engine_factory.h"
#include "rollout/vllm/plugin_loader.h"

namespace rematch {
namespace {

std::string or_none(const std::string& text) { return text.empty() ? "none" : text; }

// Where the vLLM backend looks, whether it succeeds or not.
void print_environment(const std::string& python, std::ostream& out) {
  const Interpreter found = find_interpreter(python);
  out << fmt::format("  plug-in      {}\n", or_none(plugin_path()));
  if (!found.problem.empty()) {
    out << fmt::format("  interpreter  {}: {}\n", found.command, found.problem);
    return;
  }
  out << fmt::format("  interpreter  {} (Python {}, library {})\n", found.executable,
                     found.python_version, or_none(found.libpython));
  out << fmt::format("  its torch    {} (this program: {})\n", or_none(found.torch_version),
                     REMATCH_TORCH_VERSION);
  out << fmt::format("  its vllm     {}\n", or_none(found.vllm_version));
}

// One backend: a line, followed by what is missing. True when it can run.
bool examine(const std::string& backend, const VllmOptions& vllm, std::ostream& out) {
  try {
    check_backend_available(backend, vllm);
    out << fmt::format("{:7} ready\n", backend);
    return true;
  } catch (const UserError& error) {
    out << fmt::format("{:7} cannot run here\n", backend);
    for (const Problem& problem : error.problems()) {
      out << fmt::format("  error: {}\n  where: {}\n  what:  {}\n  fix:   {}\n", problem.error,
                         problem.where, problem.what, problem.fix);
    }
    return false;
  }
}

}  // namespace

int run_doctor(const DoctorArguments& arguments, std::ostream& out) {
  const at::Device device = choose_device(arguments.device);
  VllmOptions vllm{.on_cpu = !device.is_cuda()};
  vllm.tensor_parallel_size = 1;
  std::string chosen;
  if (!arguments.config_path.empty()) {
    const Settings settings = load_config(arguments.config_path, {}).settings;
    vllm = vllm_options_of(settings, device, alone());
    chosen = settings.backend;
  }
  out << fmt::format("device  {}\n", describe_device(device));
  bool any = false, chosen_runs = false;
  for (const std::string& backend : rollout_backends().names()) {
    const bool runs = examine(backend, vllm, out);
    if (backend == "vllm") print_environment(vllm.python, out);
    any = any || runs;
    chosen_runs = chosen_runs || (runs && backend == chosen);
  }
  return (chosen.empty() ? any : chosen_runs) ? 0 : exit_code(ErrorKind::kEnvironment);
}

}  // namespace rematch
