#include "program/assembly/rank_process.h"

#include <ATen/Parallel.h>
#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <iostream>

#include "base/error.h"
#include "base/file.h"
#include "base/terminal_text.h"
#include "engine/ranks/device.h"
#include "engine/ranks/error_file.h"

namespace rematch {
namespace {

// Runs no destructors: other threads wait in calls that never return, and so may a full pipe.
[[noreturn]] void end_process(const std::string& problem) {
  ::alarm(10);
  write_error_file(problem);
  std::cerr << problem << std::flush;
  ::_exit(exit_code(ErrorKind::kEnvironment));
}

}  // namespace

RankProcess::RankProcess(const World& world, ConfigResult& result,
                         const std::string& requested_device)
    : device_(rank_device(requested_device, world, num_gpus())),
      ranks_(world, {.patience = std::chrono::seconds(result.settings.ddp_timeout),
                     .backend = result.settings.ddp_backend,
                     .device = device_,
                     .warn =
                         [](const std::string& text) {
                           std::cerr << "warning: " + printable_lines(text) + "\n" << std::flush;
                         },
                     .lost = end_process}) {
  // Rank 0's run directory is that of all ranks: with `add_version` its name holds the time.
  OutputSettings& output = result.settings.output;
  Group& group = ranks_.group();
  output.run_dir = group.broadcast(output.run_dir);
  output.logging_dir = group.broadcast(output.logging_dir);
  if (world.rank == 0) {
    terminal_ = Terminal::standard();
  } else {
    const std::string logs = output.run_dir + "/logs";
    make_directories(logs);
    file_.open(fmt::format("{}/rank-{}.log", logs, world.rank), std::ios::app);
    terminal_ = std::make_unique<Terminal>(file_, file_, Terminal::Options{});
  }
  say_threads(world);
}

void RankProcess::say_threads(const World& world) {
  if (world.is_alone()) return;
  if (device_.starts_with("cuda")) {
    terminal_->say(ranks_.backend() == DdpBackend::kNccl
                       ? "gradients go from GPU to GPU (NCCL)"
                       : "gradients go through host memory (Gloo)");
    return;
  }
  terminal_->say(fmt::format("{} ranks with {} each (OMP_NUM_THREADS; torchrun sets 1)", world.size,
                             counted(at::get_num_threads(), "thread")));
}

}  // namespace rematch
