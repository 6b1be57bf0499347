// The program's side of bench/mstep.py: optimizer steps on one row, with their cost. Prints one
// line of JSON.
#include <ATen/Parallel.h>
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "learn/mstep/make_gradient_sum.h"
#include "learn/mstep/mstep.h"
#include "learn/mstep/optim/groups.h"
#include "model/nn/affine.h"
#include "model/row.h"
#include "nn/memory_meter.h"

namespace rematch::bench {
namespace {

struct Options {
  std::string model, row;
  int steps = 2;
  bool checkpointing = false;
};

// A field of /proc/self/status in MiB: VmRSS now, VmHWM at its highest.
double process_mib(const std::string& field) {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with(field + ":")) return std::stod(line.substr(field.size() + 1)) / 1024;
  }
  return 0;
}

// Forgets the highest resident size so far.
void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

std::shared_ptr<const Segment> read_row(const std::string& path) {
  const Json json = read_json_file(path);
  auto segment = std::make_shared<Segment>();
  segment->token_ids = json.at("token_ids").get<std::vector<int>>();
  segment->labels = json.at("labels").get<std::vector<int>>();
  segment->where = path;
  return segment;
}

int run(const Options& options) {
  const auto model = Model::load(
      options.model,
      {.gradient_checkpointing = options.checkpointing ? Checkpointing::kOn : Checkpointing::kOff});
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  for (const NamedParameter& parameter : model->parameters()) {
    // The row is text only: neither side uses the vision tower.
    if (!parameter.name.starts_with("model.visual"))
      parameters.emplace_back(parameter.name, parameter.tensor);
  }
  const auto no_pixels = [](const ImageRef&) { return std::shared_ptr<const Patches>(); };
  RowModel row_model{
      .hidden_TH =
          [&](const PackedRow& row) { return forward_row(*model, make_row(row, no_pixels)); },
      .head = Head::of(model->head())};
  MStep::Options step_options;
  step_options.max_grad_norm = 1.0;
  step_options.learning_rate = 1e-4;
  MStep step(row_model,
             make_gradient_sum(make_groups(parameters, model->description().part_of,
                                           {.learning_rate = 1e-4, .weight_decay = 0})),
             {.beta1 = 0.9, .beta2 = 0.95}, Schedule({.type = ScheduleType::kConstant}),
             step_options);
  Window window;
  window.rows.push_back({{read_row(options.row)}});

  Json json = {{"threads", at::get_num_threads()},
               {"losses", Json::array()},
               {"seconds", Json::array()},
               {"cpu_s", Json::array()},
               {"optimizer_s", Json::array()}};
  json["before_mib"] = process_mib("VmRSS");
  reset_peak();
  const test::MemoryMeter meter;
  for (int i = 0; i < options.steps; ++i) {
    MetricsBag metrics;
    const auto begin = std::chrono::steady_clock::now();
    const std::clock_t cpu = std::clock();
    step.run(window, metrics);
    json["seconds"].push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    json["cpu_s"].push_back(static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC);
    json["losses"].push_back(metrics.values("loss").at(0));
    json["optimizer_s"].push_back(metrics.values("time/optimizer_s").at(0));
  }
  json["peak_mib"] = process_mib("VmHWM");
  json["allocator_peak_mib"] = static_cast<double>(meter.peak_bytes()) / (1 << 20);
  fmt::print("{}\n", json.dump());
  return 0;
}

}  // namespace
}  // namespace rematch::bench

int main(int argc, char** argv) {
  rematch::bound_onednn_caches();
  rematch::bench::Options options;
  CLI::App app{"optimizer steps on one row; bench/mstep.py compares them with transformers"};
  app.add_option("--model", options.model, "checkpoint directory")->required();
  app.add_option("--row", options.row, "JSON with token_ids and labels")->required();
  app.add_option("--steps", options.steps)->check(CLI::Range(1, 1000));
  app.add_flag("--checkpointing", options.checkpointing, "gradient checkpointing");
  CLI11_PARSE(app, argc, argv);
  try {
    return rematch::bench::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
