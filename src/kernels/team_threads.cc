// Where there is no OpenMP, and under ThreadSanitizer, which cannot see into OpenMP's own waiting:
// threads made for each call.
#include <thread>
#include <vector>

#include "kernels/team.h"

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
