#pragma once

namespace rematch::bench {

/// The machine's current peak rates.
struct Peak {
  double gb_per_s = 0;  ///< reading 256 MB once
  /// multiplications and additions in registers, the widest that the compiler uses on this
  /// processor
  double gflop_per_s = 0;
};

/// Fastest of several runs. @param seconds  for each of the two
Peak measure_peak(int num_threads, double seconds);

}  // namespace rematch::bench
