#pragma once

namespace rematch::bench {

/// What the machine does at most, right now.
struct Peak {
  double gb_per_s = 0;     ///< reading 256 MB once
  double gflop_per_s = 0;  ///< multiplications and additions of registers, in the widest the compiler gives on this processor
};

/// Fastest of several runs. @param seconds  for each of the two
Peak measure_peak(int num_threads, double seconds);

}  // namespace rematch::bench
