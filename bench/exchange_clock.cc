// Preloaded by bench/ranks.py: how long a rank waits for its exchanges of gradients. At the end of
// the process it writes a line
//
//   exchange clock: N exchanges, S s waited
//
// With EXCHANGE_CLOCK=blocking an exchange is waited for where it starts, so that nothing of it is
// hidden behind computations.
#include <ATen/ATen.h>
#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace {

using Clock = std::chrono::steady_clock;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;

struct Total {
  int num_exchanges = 0;
  double waited_s = 0;
  ~Total() {
    if (num_exchanges > 0)
      std::fprintf(stderr, "exchange clock: %d exchanges, %.6f s waited\n", num_exchanges,
                   waited_s);
  }
} g_total;

class ClockedWork : public c10d::Work {
 public:
  explicit ClockedWork(WorkPointer work) : work_(std::move(work)) {}
  bool wait(std::chrono::milliseconds timeout) override {
    const auto start = Clock::now();
    const bool done = work_->wait(timeout);
    g_total.waited_s += std::chrono::duration<double>(Clock::now() - start).count();
    return done;
  }

 private:
  WorkPointer work_;
};

constexpr const char* kExchange =
    "_ZN4c10d16ProcessGroupGloo13alltoall_baseERN2at6TensorES3_RSt6vectorIlSaIlEES7_RKNS_"
    "15AllToAllOptionsE";

}  // namespace

// A member function: its object is the first argument.
using Counts = std::vector<int64_t>;
using Exchange = WorkPointer (*)(void*, at::Tensor&, at::Tensor&, Counts&, Counts&, const void*);
WorkPointer
exchange(void* self, at::Tensor& to, at::Tensor& from, Counts& to_counts, Counts& from_counts, const void* options) asm(
    "_ZN4c10d16ProcessGroupGloo13alltoall_baseERN2at6TensorES3_RSt6vectorIlSaIlEES7_RKNS_"
    "15AllToAllOptionsE");
WorkPointer exchange(void* self, at::Tensor& to, at::Tensor& from, Counts& to_counts,
                     Counts& from_counts, const void* options) {
  static const auto original = reinterpret_cast<Exchange>(::dlsym(RTLD_NEXT, kExchange));
  static const char* const mode = std::getenv("EXCHANGE_CLOCK");
  ++g_total.num_exchanges;
  auto work =
      c10::make_intrusive<ClockedWork>(original(self, to, from, to_counts, from_counts, options));
  if (mode != nullptr && std::string(mode) == "blocking") work->wait(std::chrono::milliseconds(0));
  return work;
}
