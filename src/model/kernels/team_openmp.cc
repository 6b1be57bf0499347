#include <omp.h>

#include "model/kernels/team.h"

namespace rematch::kernels {

void run_team(int num_threads, const std::function<void(const Worker&)>& body) {
  Barrier barrier;
  if (num_threads <= 1) {
    body({0, 1, &barrier});
    return;
  }
#pragma omp parallel num_threads(num_threads)
  body({omp_get_thread_num(), omp_get_num_threads(), &barrier});
}

}  // namespace rematch::kernels
