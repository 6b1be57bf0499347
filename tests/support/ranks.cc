#include "support/ranks.h"

#include <ATen/Parallel.h>
#include <fmt/core.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <exception>
#include <thread>
#include <vector>

#include "engine/ranks/gloo_group.h"

namespace rematch::test {

void run_ranks(int size, const std::function<void(Group&)>& body) {
  auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::exception_ptr> failures(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      try {
        const auto group = make_gloo_group(store, rank, size,
                                           {.one_host = true, .timeout = std::chrono::seconds(60)});
        try {
          body(*group);
        } catch (...) {
          failures[static_cast<size_t>(rank)] = std::current_exception();
        }
        group->barrier();  // no rank closes its connections before the others are done
      } catch (...) {
        failures[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace rematch::test
