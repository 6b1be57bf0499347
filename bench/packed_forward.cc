// Forward and backward over the same 64 segments: packed rows, one padded batch, one at a time.
// Losses and gradients are compared first.
#include <ATen/Parallel.h>
#include <fmt/core.h>
#include <stdlib.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "nn/memory_meter.h"
#include "pack/carry.h"
#include "packed_forward_model.h"
#include "packed_forward_segments.h"
#include "packed_forward_variants.h"

namespace rematch::bench {
namespace {

struct Options {
  std::string model = "demo/model";
  std::string lengths = "log";
  std::string selector = "optimal";
  std::string json;
  int packing_length = 4096;
  int rounds = 5;
  WorkloadOptions workload;
};

std::vector<PackedRow> packed_rows(const Workload& workload, const Options& options) {
  CarryBuffer carry({.packing_length = options.packing_length});
  carry.insert(workload.segments);
  std::vector<PackedRow> rows;
  while (!carry.empty()) rows.push_back(carry.take_row(packing_selector(options.selector)));
  return rows;
}

void drop_gradients(const Model& model) {
  for (const NamedParameter& parameter : model.parameters())
    parameter.tensor.mutable_grad() = at::Tensor();
}

std::map<std::string, at::Tensor> gradients_of(const Model& model) {
  std::map<std::string, at::Tensor> gradients;
  for (const NamedParameter& parameter : model.parameters()) {
    if (parameter.tensor.grad().defined()) gradients[parameter.name] = parameter.tensor.grad();
  }
  return gradients;
}

// Distance of all gradients from the reference's, relative to their norm.
double relative_distance(const std::map<std::string, at::Tensor>& found,
                         const std::map<std::string, at::Tensor>& wanted) {
  double distance = 0, norm = 0;
  for (const auto& [name, gradient] : wanted) {
    distance += (found.at(name) - gradient).to(at::kDouble).square().sum().item<double>();
    norm += gradient.to(at::kDouble).square().sum().item<double>();
  }
  return std::sqrt(distance / norm);
}

struct Measured {
  double loss = 0, gradient_distance = 0, peak_mib = 0;
  std::vector<double> seconds;
  std::vector<double> cpu_seconds;  ///< of all threads: with one thread, unaffected by other load
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double cpu_time_s() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::vector<Measured> measure(const std::vector<Variant>& variants, const Model& model,
                              int rounds) {
  std::vector<Measured> all(variants.size());
  std::map<std::string, at::Tensor> reference;
  for (size_t i = 0; i < variants.size(); ++i) {
    drop_gradients(model);
    const test::MemoryMeter meter;
    all[i].loss = variants[i].run();
    all[i].peak_mib = static_cast<double>(meter.peak_bytes()) / (1 << 20);
    const auto gradients = gradients_of(model);
    if (i == 0) reference = gradients;
    all[i].gradient_distance = relative_distance(gradients, reference);
  }
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < variants.size(); ++i) {
      drop_gradients(model);
      const auto begin = std::chrono::steady_clock::now();
      const double cpu_begin_s = cpu_time_s();
      variants[i].run();
      all[i].cpu_seconds.push_back(cpu_time_s() - cpu_begin_s);
      all[i].seconds.push_back(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
  }
  return all;
}

std::string machine() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string line, name = "unknown CPU";
  while (std::getline(cpuinfo, line)) {
    if (line.starts_with("model name")) name = line.substr(line.find(':') + 2);
  }
  return fmt::format("{}, {} threads", name, at::get_num_threads());
}

Json report(const Options& options, const Workload& workload, const Model& model,
            const std::vector<Variant>& variants, const std::vector<Measured>& measured) {
  int64_t num_parameters = 0;
  for (const NamedParameter& parameter : model.parameters())
    num_parameters += parameter.tensor.numel();
  Json json = {{"machine", machine()},
               {"model", options.model},
               {"parameters", num_parameters},
               {"lengths", options.lengths},
               {"images", options.workload.with_images},
               {"segments", workload.segments.size()},
               {"tokens", workload.num_tokens},
               {"shortest", workload.min_len},
               {"longest", workload.max_len},
               {"packing_length", options.packing_length},
               {"selector", options.selector},
               {"rounds", options.rounds},
               {"variants", Json::array()}};
  fmt::print(
      "{}\n{} ({:.1f} M parameters, float32), {} segments of {}-{} tokens ({}), {} tokens, {}\n",
      machine(), options.model, static_cast<double>(num_parameters) / 1e6, workload.segments.size(),
      workload.min_len, workload.max_len, options.lengths, workload.num_tokens,
      options.workload.with_images ? "with images" : "text only");
  fmt::print("{:<24}{:>10}{:>10}{:>10}{:>10}{:>10}{:>11}{:>8}{:>14}\n", "", "positions", "median s",
             "tokens/s", "CPU s", "peak MiB", "packed is", "by CPU", "grad distance");
  for (size_t i = 0; i < variants.size(); ++i) {
    const Measured& one = measured[i];
    const double wall_s = median(one.seconds), cpu_s = median(one.cpu_seconds);
    const double tokens_per_s = static_cast<double>(workload.num_tokens) / wall_s;
    const double ratio = wall_s / median(measured[0].seconds),
                 cpu_ratio = cpu_s / median(measured[0].cpu_seconds);
    fmt::print("{:<24}{:>10}{:>10.3f}{:>10.0f}{:>10.3f}{:>10.0f}{:>10.2f}x{:>7.2f}x{:>14.1e}\n",
               variants[i].name, variants[i].num_positions, wall_s, tokens_per_s, cpu_s,
               one.peak_mib, ratio, cpu_ratio, one.gradient_distance);
    json["variants"].push_back({{"name", variants[i].name},
                                {"positions", variants[i].num_positions},
                                {"median_s", wall_s},
                                {"seconds", one.seconds},
                                {"tokens_per_s", tokens_per_s},
                                {"cpu_seconds", one.cpu_seconds},
                                {"peak_mib", one.peak_mib},
                                {"packed_speedup", ratio},
                                {"packed_speedup_cpu", cpu_ratio},
                                {"loss", one.loss},
                                {"gradient_distance", one.gradient_distance}});
  }
  return json;
}

// A directory that is removed with this object.
struct TemporaryDirectory {
  TemporaryDirectory() { REMATCH_CHECK(mkdtemp(path.data()) != nullptr, path); }
  ~TemporaryDirectory() { std::filesystem::remove_all(path); }
  std::string path = (std::filesystem::temp_directory_path() / "packed_forward.XXXXXX").string();
};

int run(const Options& options) {
  const TemporaryDirectory directory;
  const bool is_random = options.model == "random";
  if (is_random) write_random_model("demo/model", directory.path);
  const std::string model_dir = is_random ? directory.path : options.model;
  const Workload workload = make_workload(model_dir, options.workload);
  std::map<std::string, std::shared_ptr<const Patches>> images;
  for (const auto& segment : workload.segments) {
    for (const ImageRef& image : segment->images) images[image.path] = noise_pixels(image);
  }
  Job job{.model = Model::load(model_dir, {}),
          .segments = workload.segments,
          .loss = {.coord_token_ids = workload.coord_token_ids},
          .pixels = [&](const ImageRef& image) { return images.at(image.path); }};
  for (const NamedParameter& parameter : job.model->parameters()) {
    // Without images the vision tower gets no gradient.
    parameter.tensor.set_requires_grad(options.workload.with_images ||
                                       !parameter.name.starts_with("model.visual"));
  }
  std::vector<PackedRow> alone;
  for (const auto& segment : workload.segments) alone.push_back({{segment}});
  const std::vector<PackedRow> rows = packed_rows(workload, options);
  const std::vector<Variant> variants{
      rows_variant(job, fmt::format("packed, {} rows", rows.size()), rows),
      padded_variant(job, "padded, mask", PaddedAttention::kMask),
      padded_variant(job, "padded, causal kernel", PaddedAttention::kCausal),
      rows_variant(job, "one at a time", alone)};
  const std::vector<Measured> measured = measure(variants, *job.model, options.rounds);
  const Json json = report(options, workload, *job.model, variants, measured);
  if (!options.json.empty()) write_file_atomic(options.json, python_json(json, 2) + "\n");
  const bool same = std::all_of(measured.begin(), measured.end(),
                                [](const Measured& one) { return one.gradient_distance <= 1e-5; });
  if (!same)
    fmt::print("the gradients differ by more than 1e-5: these numbers compare different work\n");
  return same ? 0 : 1;
}

}  // namespace
}  // namespace rematch::bench

int main(int argc, char** argv) {
  rematch::bench::Options options;
  bool text_only = false;
  CLI::App app{"forward and backward over packed rows, a padded batch and single segments"};
  app.add_option("--model", options.model,
                 "checkpoint with 16-pixel patches, or `random` for 31 M random parameters");
  app.add_option("--lengths", options.lengths, "log: many short, few long; even: uniform")
      ->check(CLI::IsMember({"log", "even"}));
  app.add_option("--selector", options.selector, "of the rows")
      ->check(CLI::IsMember({"optimal", "binpacking", "fifo"}));
  app.add_option("--packing-length", options.packing_length, "tokens of a row")
      ->check(CLI::Range(600, 1 << 20));
  app.add_option("--segments", options.workload.num_segments)->check(CLI::Range(1, 100000));
  app.add_option("--rounds", options.rounds, "timed runs of each variant")
      ->check(CLI::Range(1, 1000));
  app.add_option("--json", options.json, "file to write");
  app.add_flag("--text-only", text_only, "no images");
  CLI11_PARSE(app, argc, argv);
  options.workload.with_images = !text_only;
  options.workload.mix = options.lengths == "even" ? rematch::bench::LengthMix::kEven
                                                   : rematch::bench::LengthMix::kLog;
  try {
    return rematch::bench::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
