// Time by operator of a training run: `bench_profile CONFIG RANK [key=value …]`. Every operator of
// ATen and every node of a backward pass is timed without what it calls; products that have a
// dimension of RANK are an adapter's. Time outside operators is the last row: loading, images, and
// loops of our own. One thread of the program runs at a time (forward, then backward), so the sum
// is wall time.
#include <ATen/record_function.h>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "program/assembly/run.h"

namespace rematch::bench {
namespace {

using Clock = std::chrono::steady_clock;
int64_t rank = 8;  // of the adapter

struct Total {
  int64_t calls = 0;
  double seconds = 0;
};

struct Profile {
  std::mutex mutex;
  std::map<std::string, Total> totals;
};

Profile& profile() {
  static Profile instance;
  return instance;
}

struct Running : at::ObserverContext {
  std::string name;
  Clock::time_point start;
  double inner_s = 0;
  Running* outer = nullptr;
};

thread_local Running* current = nullptr;

bool is_product(const std::string& name) {
  for (const char* product : {"aten::mm", "aten::addmm", "aten::bmm", "mkldnn::_linear_pointwise"})
    if (name == product) return true;
  return false;
}

bool is_of_adapter(const at::RecordFunction& function) {
  for (const c10::IValue& input : function.inputs()) {
    if (!input.isTensor() || input.toTensor().dim() < 2) continue;
    const at::IntArrayRef sizes = input.toTensor().sizes();
    if (std::find(sizes.end() - 2, sizes.end(), rank) != sizes.end()) return true;
  }
  return false;
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  auto running = std::make_unique<Running>();
  running->name = function.name();
  if (is_product(running->name)) running->name += is_of_adapter(function) ? ", of an adapter" : "";
  running->outer = std::exchange(current, running.get());
  running->start = Clock::now();
  return running;
}

void end(const at::RecordFunction&, at::ObserverContext* context) {
  auto* running = static_cast<Running*>(context);
  const double seconds = std::chrono::duration<double>(Clock::now() - running->start).count();
  current = running->outer;
  if (current != nullptr) current->inner_s += seconds;
  Profile& all = profile();
  const std::lock_guard lock(all.mutex);
  Total& total = all.totals[running->name];
  ++total.calls;
  total.seconds += seconds - running->inner_s;
}

void print(double all_s) {
  std::vector<std::pair<std::string, Total>> rows(profile().totals.begin(), profile().totals.end());
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  fmt::print("| operator | calls | seconds | share |\n|---|---|---|---|\n");
  double sum = 0, rest = 0;
  for (const auto& [name, total] : rows) {
    sum += total.seconds;
    if (total.seconds < 0.005 * all_s) {
      rest += total.seconds;
      continue;
    }
    fmt::print("| `{}` | {} | {:.2f} | {:.1f} % |\n", name, total.calls, total.seconds,
               100 * total.seconds / all_s);
  }
  fmt::print("| others, below half a percent each | | {:.2f} | {:.1f} % |\n", rest,
             100 * rest / all_s);
  fmt::print("| outside operators | | {:.2f} | {:.1f} % |\n", all_s - sum,
             100 * (all_s - sum) / all_s);
}

int run(const std::string& config, const std::vector<std::string>& settings) {
  at::addGlobalCallback(at::RecordFunctionCallback(begin, end).needsInputs(true));
  Terminal terminal(std::cerr, std::cerr, {});
  const auto start = Clock::now();
  run_training(load_config(config, settings), {.terminal = terminal});
  print(std::chrono::duration<double>(Clock::now() - start).count());
  return 0;
}

}  // namespace
}  // namespace rematch::bench

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: bench_profile CONFIG RANK [key=value ...]\n";
    return 2;
  }
  try {
    rematch::bench::rank = std::stoll(argv[2]);
    return rematch::bench::run(argv[1], {argv + 3, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
