// Creates threads for each call. Used without OpenMP, and under ThreadSanitizer, which does not
// understand OpenMP's synchronisation.
#include <thread>
#include <vector>

#include "model/kernels/team.h"

namespace rematch::kernels {

void run_team(int num_threads, const std::function<void(const Worker&)>& body) {
  Barrier barrier;
  const int count = num_threads > 1 ? num_threads : 1;
  std::vector<std::thread> others;
  for (int i = 1; i < count; ++i) others.emplace_back([&, i] { body({i, count, &barrier}); });
  body({0, count, &barrier});
  for (std::thread& thread : others) thread.join();
}

}  // namespace rematch::kernels
