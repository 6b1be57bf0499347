#include "learn/pack/packer.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace rematch {
namespace {

// Underfilled rows are reported at every doubling of their number, so the warning does not flood a
// long run.
bool is_worth_reporting(int64_t count) { return (count & (count - 1)) == 0; }

}  // namespace

void PackingSummary::add(const PackedRow& row) {
  int longest = 0;
  for (const auto& segment : row.segments) longest = std::max(longest, segment->encoded_len());
  const auto segments = std::ssize(row.segments);
  ++num_rows;
  num_segments += segments;
  num_tokens += row.total_len();
  padded_tokens += segments * longest;
}

void PackingSummary::add(const PackingSummary& other) {
  num_rows += other.num_rows;
  num_segments += other.num_segments;
  num_tokens += other.num_tokens;
  padded_tokens += other.padded_tokens;
  num_underfilled += other.num_underfilled;
}

std::string PackingSummary::text(int packing_length, size_t num_waiting) const {
  if (num_rows == 0) return "packing: no row was trained";
  const double fill = static_cast<double>(num_tokens) / (num_rows * packing_length);
  const double avoided = 100.0 * (padded_tokens - num_tokens) / std::max<int64_t>(1, padded_tokens);
  std::string line = fmt::format(
      "packing: {} rows of up to {} tokens, mean fill {:.3f}, {} segments, {} tokens; as padded "
      "batches {} ({:.0f} % padding avoided)",
      num_rows, packing_length, fill, num_segments, num_tokens, padded_tokens, avoided);
  if (num_underfilled > 0) line += fmt::format("; {} underfilled rows", num_underfilled);
  if (num_waiting > 0)
    line += fmt::format("; {} segments were still waiting and not trained", num_waiting);
  return line;
}

Packer::Packer(Options options)
    : options_(std::move(options)),
      scope_(options_.packing_length > 0 ? options_.pack.scope : PackScope::kMicroBatch),
      carry_({.packing_length = options_.packing_length,
              .packing_buffer = scope_ == PackScope::kCarry ? options_.pack.buffer : 0}) {}

std::vector<PackedRow> Packer::pack(WindowSegments micro_batches, MetricsBag& metrics) {
  const Span time(metrics, "time/post_rollout_pack_s");
  std::vector<PackedRow> rows;
  const auto add = [&](PackedRow row) {
    if (options_.packing_length > 0) record(row, metrics);
    rows.push_back(std::move(row));
  };
  for (auto& segments : micro_batches) {
    if (segments.empty()) continue;
    if (scope_ == PackScope::kMicroBatch) {
      add({std::move(segments)});
      continue;
    }
    carry_.insert(std::move(segments));
    if (scope_ == PackScope::kCarry) add(carry_.take_row(options_.pack.selector));
  }
  while (scope_ == PackScope::kWindow && !carry_.empty())
    add(carry_.take_row(options_.pack.selector));
  return rows;
}

void Packer::restore(Segments waiting, const PackingSummary& summary) {
  carry_.insert(std::move(waiting));
  summary_ = summary;
}

void Packer::record(const PackedRow& row, MetricsBag& metrics) {
  const double fill = static_cast<double>(row.total_len()) / options_.packing_length;
  metrics.add("packing/post_rollout_fill", fill);
  metrics.add("packing/post_rollout_selected_total_len", row.total_len());
  metrics.add("packing/post_rollout_segments", row.segments.size());
  metrics.add("packing/post_rollout_buffer", carry_.waiting().size());
  summary_.add(row);
  if (fill >= options_.pack.min_fill_ratio) return;
  ++summary_.num_underfilled;
  if (!options_.warn || !is_worth_reporting(summary_.num_underfilled)) return;
  options_.warn(
      fmt::format("packed row underfilled: fill {:.3f}, target {} (packing_min_fill_ratio), {} "
                  "segments, {} waiting in the buffer (row {}, {} so far)",
                  fill, options_.pack.min_fill_ratio, row.segments.size(), carry_.waiting().size(),
                  summary_.num_rows, summary_.num_underfilled));
}

std::string Packer::summary_text(const PackingSummary& total, size_t num_waiting) const {
  return options_.packing_length > 0 ? total.text(options_.packing_length, num_waiting)
                                     : std::string();
}

}  // namespace rematch
