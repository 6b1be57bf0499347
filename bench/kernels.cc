// Products of the sizes that decoding and prefill need, compared with the machine's peak read and
// multiply rates, measured in the same run. usage: bench_kernels [--threads N] [--seconds S] [--isa
// portable|avx2|avx512] [--json FILE]
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rollout/native/cpu_buffer.h"
#include "kernels/attention.h"
#include "kernels/gemm.h"
#include "kernels/isa.h"
#include "kernels_peak.h"
#include "kernels/team.h"

namespace rematch {
namespace {

using kernels::Storage;
using kernels::Worker;
using Clock = std::chrono::steady_clock;

struct Options {
  int threads = 2;
  double seconds = 0.15;
  std::string isa, json;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What one thread has computed, in seconds: with a single thread, the time of other processes on
// the core does not count.
double now(const Options& options) {
  timespec time;
  clock_gettime(options.threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// The time that one in ten runs stays below: on a shared machine slower runs show the load of the
// neighbours.
double typical(std::vector<double>& seconds) {
  const auto tenth = seconds.begin() + static_cast<int64_t>(seconds.size() / 10);
  std::nth_element(seconds.begin(), tenth, seconds.end());
  return *tenth;
}

// As many matrices as a model has, in sequence: none is still in a cache when its turn comes,
// unless all of them fit.
struct Case {
  const char* name;
  int64_t num_outputs, num_inputs, total_bytes;
};

nlohmann::json measure(const Options& options, const Case& size, Storage storage,
                       int64_t num_rows) {
  const int64_t bytes = size.num_outputs * size.num_inputs * kernels::storage_bytes(storage);
  const int64_t copies = std::max<int64_t>(1, size.total_bytes / bytes);
  const CpuBuffer<uint8_t> data(copies * bytes);
  std::fill_n(data.data(), data.size(), uint8_t{0});
  const std::vector<float> x(static_cast<size_t>(num_rows * size.num_inputs), 0.5f);
  std::vector<float> y(static_cast<size_t>(num_rows * size.num_outputs)), interleaved(x.size());
  const kernels::InterleavedRows in_order{interleaved.data(), num_rows, size.num_inputs};
  std::vector<double> times;
  const auto start = Clock::now();
  do {
    kernels::run_team(options.threads, [&](const Worker& worker) {
      const kernels::Range columns =
          kernels::share(size.num_outputs, kernels::kPanel, worker.index, worker.count);
      for (int64_t i = 0; i < copies; ++i) {
        const kernels::PackedWeights w{data.data() + i * bytes, storage, size.num_outputs,
                                       size.num_inputs};
        const double begin = now(options);
        const kernels::Range mine = kernels::share(num_rows, 1, worker.index, worker.count);
        kernels::interleave({x.data(), size.num_inputs}, mine, {0, size.num_inputs}, in_order);
        worker.wait();
        kernels::gemm(w, in_order, {y.data(), size.num_outputs}, columns);
        worker.wait();
        if (worker.index == 0) times.push_back(now(options) - begin);
      }
    });
  } while (seconds_since(start) < options.seconds);
  const double s = typical(times);
  const double gb = static_cast<double>(bytes) / 1e9 / s;
  const double gflop =
      2.0 * static_cast<double>(size.num_outputs * size.num_inputs * num_rows) / 1e9 / s;
  fmt::print("{:8} {:9} {:5} rows  {:8.1f} GB/s {:8.1f} GFLOP/s {:9.1f} us each\n", size.name,
             storage == Storage::kFloat ? "float32" : "bfloat16", num_rows, gb, gflop, s * 1e6);
  return {{"case", size.name},
          {"storage", storage == Storage::kFloat ? "float32" : "bfloat16"},
          {"rows", num_rows},
          {"gb_per_s", gb},
          {"gflop_per_s", gflop}};
}

// A decoding step of one layer: every sequence reads its keys and values once.
nlohmann::json measure_attention(const Options& options, int64_t num_sequences, int64_t length) {
  constexpr int64_t kKvHeads = 4, kGroup = 2, kHead = 64, kBlock = 16;
  const int64_t blocks_each = (length + kBlock - 1) / kBlock,
                num_blocks = num_sequences * blocks_each;
  std::vector<float> keys(static_cast<size_t>(num_blocks * kKvHeads * kBlock * kHead), 0.1f),
      values = keys;
  const std::vector<float> q(static_cast<size_t>(num_sequences * kKvHeads * kGroup * kHead), 0.3f);
  std::vector<float> out(q.size());
  std::vector<int32_t> table(static_cast<size_t>(num_blocks));
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<int32_t>(i);
  const kernels::CacheLayer cache{keys.data(), values.data(), Storage::kFloat,
                                  kKvHeads,    kBlock,        kHead};
  std::vector<double> times;
  const auto start = Clock::now();
  do {
    const double begin = now(options);
    kernels::run_team(options.threads, [&](const Worker& worker) {
      std::vector<float> floats(static_cast<size_t>(kernels::attention_scratch_floats(kHead)));
      std::vector<const void*> rows(kernels::kAttentionScratchRows);
      const kernels::Range range =
          kernels::share(num_sequences * kKvHeads, 1, worker.index, worker.count);
      for (int64_t i = range.begin; i < range.end; ++i) {
        const int64_t sequence = i / kKvHeads, width = kKvHeads * kGroup * kHead;
        const kernels::AttentionTask task{.block_table = table.data() + sequence * blocks_each,
                                          .first_position = length - 1,
                                          .kv_head = i % kKvHeads,
                                          .group = kGroup,
                                          .queries = {0, kGroup},
                                          .q = {q.data() + sequence * width, width},
                                          .out = {out.data() + sequence * width, width}};
        kernels::attend(cache, task, {floats.data(), rows.data()});
      }
    });
    times.push_back(now(options) - begin);
  } while (seconds_since(start) < options.seconds);
  const double s = typical(times);
  const double gb =
      2.0 * static_cast<double>(num_sequences * length * kKvHeads * kHead * 4) / 1e9 / s;
  fmt::print("attention {:3} sequences of {:5} tokens, groups of 2  {:8.1f} GB/s {:9.1f} us\n",
             num_sequences, length, gb, s * 1e6);
  return {
      {"case", "attention"}, {"sequences", num_sequences}, {"tokens", length}, {"gb_per_s", gb}};
}

int run(const Options& options) {
  for (const kernels::Isa isa : kernels::available_isas()) {
    if (options.isa == kernels::isa_name(isa)) kernels::use_isa(isa);
  }
  nlohmann::json results = nlohmann::json::array();
  const bench::Peak peak = bench::measure_peak(options.threads, options.seconds);
  fmt::print("{}, {} threads: reads {:.1f} GB/s, multiplies {:.1f} GFLOP/s\n",
             kernels::isa_name(kernels::isa_in_use()), options.threads, peak.gb_per_s,
             peak.gflop_per_s);
  const Case cases[] = {{"tiny", 768, 256, 16 << 20},
                        {"small", 1536, 512, 100 << 20},
                        {"medium", 3072, 1024, 300 << 20},
                        {"down", 1024, 3072, 300 << 20}};
  for (const Case& size : cases) {
    for (const int64_t rows : {1, 2, 4, 6, 8, 12, 16, 24, 32, 64, 256})
      results.push_back(measure(options, size, Storage::kFloat, rows));
  }
  for (const int64_t rows : {1, 8, 16, 256})
    results.push_back(measure(options, cases[2], Storage::kBfloat16, rows));
  for (const int64_t sequences : {1, 16})
    results.push_back(measure_attention(options, sequences, 500));
  if (!options.json.empty()) {
    std::ofstream(options.json) << nlohmann::json{
        {"isa", kernels::isa_name(kernels::isa_in_use())},
        {"threads", options.threads},
        {"peak", {{"gb_per_s", peak.gb_per_s}, {"gflop_per_s", peak.gflop_per_s}}},
        {"results", results}}.dump(1);
  }
  return 0;
}

}  // namespace
}  // namespace rematch

int main(int argc, char** argv) {
  CLI::App app("CPU kernels compared with the machine's peaks");
  rematch::Options options;
  app.add_option("--threads", options.threads);
  app.add_option("--seconds", options.seconds, "duration of each measurement");
  app.add_option("--isa", options.isa);
  app.add_option("--json", options.json);
  CLI11_PARSE(app, argc, argv);
  return rematch::run(options);
}
