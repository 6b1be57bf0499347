// link_speed BYTES [DEVICE]: the speed of the links between the ranks of a run, for
// scripts/gpu-check.
//
// Every rank first sends BYTES/ranks to each rank, as in an exchange of gradients; then each link
// is alone. Rank 0 prints JSON: seconds, bytes and GB/s of the busiest receiver, and the slowest
// link.
#include <ATen/ATen.h>
#include <ATen/DeviceAccelerator.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/ranks/device.h"
#include "engine/ranks/group.h"
#include "engine/ranks/ranks.h"
#include "engine/ranks/world.h"

namespace rematch {
namespace {

constexpr int kRepeats = 3;
constexpr double kGigabyte = 1e9;
using Counts = std::vector<int64_t>;

double seconds_of_exchange(Group& group, const at::Tensor& send, const Counts& send_counts,
                           const at::Tensor& receive, const Counts& receive_counts) {
  const at::Device device = group.message_device();
  const auto begin = std::chrono::steady_clock::now();
  group.exchange(send, send_counts, receive, receive_counts)();
  if (!device.is_cpu()) at::accelerator::synchronizeDevice(device.index());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Seconds of the slowest rank, in the quickest of kRepeats exchanges after one that connects.
double time_exchange(Group& group, const Counts& send_counts, const Counts& receive_counts) {
  const auto sum = [](const Counts& counts) {
    int64_t total = 0;
    for (const int64_t count : counts) total += count;
    return total;
  };
  const auto options = at::TensorOptions().dtype(at::kByte).device(group.message_device());
  const at::Tensor send = at::zeros({sum(send_counts)}, options),
                   receive = at::empty({sum(receive_counts)}, options);
  double quickest = 0;
  for (int i = 0; i <= kRepeats; ++i) {
    group.barrier();
    const double own = seconds_of_exchange(group, send, send_counts, receive, receive_counts);
    double slowest = 0;
    for (const std::string& text : group.all_gather(std::to_string(own)))
      slowest = std::max(slowest, std::stod(text));
    if (i == 1 || (i > 1 && slowest < quickest)) quickest = slowest;
  }
  return quickest;
}

nlohmann::json measure(Group& group, int64_t bytes) {
  const int size = group.size(), rank = group.rank();
  const int64_t share = bytes / size;
  const Counts none(size, 0), all(size, share);
  const double seconds = time_exchange(group, all, all);
  const auto received = static_cast<double>(share * (size - 1));
  nlohmann::json report = {{"ranks", size},
                           {"on", group.message_device().is_cpu() ? "Gloo" : "NCCL"},
                           {"seconds", seconds},
                           {"bytes of the busiest", received},
                           {"GB/s of the busiest", received / seconds / kGigabyte}};
  double least = 0;
  for (int from = 0; from < size; ++from) {
    for (int to = 0; to < size; ++to) {
      if (from == to) continue;
      Counts send = none, receive = none;
      if (rank == from) send[to] = bytes;
      if (rank == to) receive[from] = bytes;
      const double speed =
          static_cast<double>(bytes) / time_exchange(group, send, receive) / kGigabyte;
      if (least > 0 && speed >= least) continue;
      least = speed;
      report["slowest link"] = std::to_string(from) + " to " + std::to_string(to);
      report["GB/s of the slowest link"] = speed;
    }
  }
  return report;
}

int run(int argc, char** argv) {
  const std::string bytes = argc > 1 ? argv[1] : "", requested = argc > 2 ? argv[2] : "auto";
  const World world = world_from_environment();
  if (bytes.empty() || world.is_alone()) {
    std::cerr << "usage: torchrun --no-python --nproc-per-node N link_speed BYTES [DEVICE]\n";
    return 2;
  }
  const std::string device = rank_device(requested, world, num_gpus());
  use_device(choose_device(device));
  const auto say = [](const std::string& text) { std::cerr << text << "\n" << std::flush; };
  Ranks ranks(world, {.backend = DdpBackend::kAuto,
                      .device = device,
                      .warn = say,
                      .lost = [say](const std::string& problem) {
                        say(problem);
                        std::_Exit(1);
                      }});
  const nlohmann::json report = measure(ranks.group(), std::stoll(bytes));
  if (world.rank == 0) std::cout << report.dump() << "\n";
  return 0;
}

}  // namespace
}  // namespace rematch

int main(int argc, char** argv) {
  try {
    return rematch::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
