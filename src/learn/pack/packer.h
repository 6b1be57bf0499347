#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/flow/segment.h"
#include "base/metrics.h"
#include "learn/pack/carry.h"

namespace rematch {

/// Packing totals of a run, printed as its last line.
struct PackingSummary {
  int64_t num_rows = 0;
  int64_t num_segments = 0;
  int64_t num_tokens = 0;
  int64_t padded_tokens = 0;    ///< tokens if each row were a padded batch
  int64_t num_underfilled = 0;  ///< rows below min_fill_ratio

  void add(const PackedRow& row);
  void add(const PackingSummary& other);
  /// E.g. "packing: 12 rows, mean fill 0.91, 84 segments, 10 920 tokens; as padded batches 14 208
  /// (23 % padding avoided)".
  /// @param packing_length  tokens of a full row
  /// @param num_waiting     segments that were built but never trained on
  std::string text(int packing_length, size_t num_waiting) const;

  friend void fields(auto& wire, PackingSummary& packing) {
    wire(packing.num_rows, packing.num_segments, packing.num_tokens, packing.padded_tokens,
         packing.num_underfilled);
  }
};

/// Packs the segments of a window into the rows of its M-step.
class Packer {
 public:
  struct Options {
    PackSettings pack;
    /// 0 = packing off: every micro-batch is a row, no cap, no telemetry
    int packing_length = 0;
    /// receives the underfilled warning; may be empty
    std::function<void(const std::string&)> warn;
  };
  explicit Packer(Options options);

  /// Makes the rows of a window. Adds time/post_rollout_pack_s and the packing/* metrics of each
  /// row. Segments that do not fit wait for the next window (kCarry).
  /// @param micro_batches  segments by micro-batch, in sample order; an empty micro-batch gives no
  /// row
  /// @throws UserError as check_insertion; the buffer is then unchanged by that micro-batch
  std::vector<PackedRow> pack(WindowSegments micro_batches, MetricsBag& metrics);

  /// Restores the waiting segments of a checkpoint.
  /// @throws UserError as check_insertion, e.g. with a smaller packing_buffer than before
  void restore(Segments waiting, const PackingSummary& summary);

  /// Waiting segments, oldest first.
  const Segments& waiting() const { return carry_.waiting(); }
  const PackingSummary& summary() const { return summary_; }
  /// The summary at the end of a run; empty with packing off. Both arguments are sums over all
  /// ranks.
  std::string summary_text(const PackingSummary& total, size_t num_waiting) const;
  std::string summary_text() const { return summary_text(summary_, carry_.waiting().size()); }

 private:
  void record(const PackedRow& row, MetricsBag& metrics);

  Options options_;
  PackScope scope_;
  CarryBuffer carry_;
  PackingSummary summary_;
};

}  // namespace rematch
