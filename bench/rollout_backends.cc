// Tokens per second and resident memory of the rollout backends: each in its own process, in turns
// on the same prompts.
#include <ATen/Parallel.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/random.h"
#include "base/text.h"
#include "engine/rollout/engine_factory.h"
#include "model/text/chat_template.h"
#include "model/text/prompt.h"
#include "model/text/tokenizer.h"

namespace rematch::bench {
namespace {

struct Arguments {
  std::string model = "demo/model";
  std::string backends = "hf,vllm";
  std::string batches = "1,8,32";
  int new_tokens = 128;
  int image_px = 128;
  int rounds = 3;
  int threads = 0;
  std::string json;
  std::string side;  ///< set in a child: the backend it is
};

// Noise decodes and prefills like any image.
Image noise(uint64_t number, int side_px) {
  Image image{.width_px = side_px, .height_px = side_px};
  image.rgb.resize(static_cast<size_t>(side_px * side_px * 3));
  for (size_t i = 0; i < image.rgb.size(); ++i)
    image.rgb[i] = static_cast<uint8_t>(random_bits(number, i));
  return image;
}

double resident_mib() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return static_cast<double>(resident) * 4096.0 / (1 << 20);
}

/// One backend in its process. Every answer has `new_tokens` tokens: no token stops it.
class Side {
 public:
  explicit Side(const Arguments& arguments) : arguments_(arguments) {
    if (arguments.threads > 0) at::set_num_threads(arguments.threads);
    const std::shared_ptr<Model> model = Model::load(arguments.model, {});
    const auto tokenizer = Tokenizer::load(arguments.model);
    const PatchOptions patches = PatchOptions::from_model_dir(arguments.model);
    const PromptEncoder encoder(
        tokenizer, std::make_shared<const ChatTemplate>(ChatTemplate::load(arguments.model)),
        {.texts = {.system_prompt = "List the objects as JSON.",
                   .user_prompt = "Find every digit and mark."},
         .merge_size = patches.merge_size});
    const GridThw grid = grid_of(arguments.image_px, arguments.image_px, patches);
    for (int i = 0; i < kMostPrompts; ++i) {
      Prompt prompt{.sample_id = i,
                    .images = {{.path = std::to_string(i), .grid_thw = grid}},
                    .where = std::to_string(i)};
      prompt.token_ids = encoder.encode({grid});
      prompts_.push_back(std::move(prompt));
    }
    const auto picture = [patches, &arguments](const std::string& number) {
      return std::make_shared<const Patches>(
          patchify(noise(std::stoull(number), arguments.image_px), patches, number));
    };
    for (const Prompt& prompt : prompts_) pixels_[prompt.where] = picture(prompt.where);
    parts_ = {.model = model, .tokenizer = tokenizer, .pixels = [this](const ImageRef& image) {
                return pixels_.at(image.path);
              }};
    parts_.vllm = {{.tensor_parallel_size = 1,
                    .gpu_memory_utilization = 0.3,
                    .max_model_len = static_cast<int64_t>(prompts_.front().token_ids.size()) +
                                     arguments.new_tokens,
                    .max_num_seqs = kMostPrompts}};
    parts_.vllm.model_dir = arguments.model;
    check_backend_available(arguments.side, parts_.vllm);
  }

  Json run(int batch) {
    if (!engine_) make();
    if (arguments_.side == "hf") make(batch);  // its batch is an option
    // Every call uses new images, so that no prompt cache can answer.
    std::vector<Prompt> asked;
    for (int i = 0; i < batch; ++i) asked.push_back(prompts_[(first_++) % prompts_.size()]);
    engine_->sync_weights(kCurrentWeights);
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<Rollout> rollouts = engine_->generate(asked, {});
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    int64_t num_tokens = 0;
    for (const Rollout& rollout : rollouts)
      num_tokens += static_cast<int64_t>(rollout.response_token_ids.size());
    REMATCH_CHECK(num_tokens == static_cast<int64_t>(batch) * arguments_.new_tokens,
                  "every answer is of full length");
    return {{"tokens_per_s", static_cast<double>(num_tokens) / seconds},
            {"resident_mib", resident_mib()},
            {"threads", at::get_num_threads()}};
  }

 private:
  static constexpr int kMostPrompts = 64;

  void make(int batch = 1) {
    engine_ = make_engine(arguments_.side, parts_,
                          {{.max_new_tokens = arguments_.new_tokens, .batch_size = batch}});
  }

  Arguments arguments_;
  EngineParts parts_;
  std::map<std::string, std::shared_ptr<const Patches>> pixels_;
  std::vector<Prompt> prompts_;
  size_t first_ = 0;
  std::unique_ptr<RolloutEngine> engine_;
};

int run_side(const Arguments& arguments) {
  const auto answer = [](const Json& line) { std::cout << line.dump() << std::endl; };
  try {
    Side side(arguments);
    answer({{"ready", true}});
    for (int batch = 0; std::cin >> batch;) answer(side.run(batch));
    return 0;
  } catch (const std::exception& error) {
    answer({{"error", error.what()}});
    return 1;
  }
}

/// A child process that is one side.
class Child {
 public:
  Child(const std::string& backend, char** argv) : backend_(backend) {
    int in[2], out[2];
    // or the next child would keep them open
    REMATCH_CHECK(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      std::vector<char*> arguments;
      for (char** word = argv; *word != nullptr; ++word) arguments.push_back(*word);
      std::string option = "--side=" + backend;
      arguments.push_back(option.data());
      arguments.push_back(nullptr);
      execv("/proc/self/exe", arguments.data());
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    to_ = fdopen(in[1], "w");
    from_ = fdopen(out[0], "r");
  }
  Child(const Child&) = delete;
  ~Child() {
    fclose(to_);
    fclose(from_);
    waitpid(pid_, nullptr, 0);
  }
  const std::string& backend() const { return backend_; }
  Json ask(const std::string& line) {
    fputs(line.c_str(), to_);
    fflush(to_);
    return read();
  }
  Json read() {
    char* text = nullptr;
    size_t size = 0;
    const ssize_t length = getline(&text, &size, from_);
    const std::string line = length > 0 ? std::string(text, static_cast<size_t>(length))
                                        : R"({"error":"the process ended"})";
    free(text);
    return parse_json(line, backend_);
  }

 private:
  std::string backend_;
  pid_t pid_ = 0;
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int compare(const Arguments& arguments, char** argv) {
  std::vector<std::unique_ptr<Child>> sides;
  Json report{{"model", arguments.model},
              {"new_tokens", arguments.new_tokens},
              {"image_px", arguments.image_px},
              {"rows", Json::array()}};
  for (const std::string& backend : split(arguments.backends, ',')) {
    auto child = std::make_unique<Child>(backend, argv);
    const Json hello = child->read();
    if (hello.contains("error")) {
      std::cerr << fmt::format("{} is skipped:\n{}\n", backend, hello["error"].get<std::string>());
      report["left_out"][backend] = hello["error"];
      continue;
    }
    sides.push_back(std::move(child));
  }
  if (sides.empty()) return 1;
  std::cout << fmt::format("{} new tokens per answer, {} px images, {}, medians of {} rounds\n",
                           arguments.new_tokens, arguments.image_px, arguments.model,
                           arguments.rounds);
  std::cout << fmt::format("{:>5}  {:8} {:>10} {:>9} {:>14}\n", "batch", "backend", "tokens/s",
                           "of " + sides.front()->backend(), "resident MiB");
  for (const std::string& batch : split(arguments.batches, ',')) {
    std::map<std::string, std::vector<double>> speed, memory;
    for (int round = 0; round <= arguments.rounds; ++round) {
      for (const auto& side : sides) {
        const Json seen = side->ask(batch + "\n");
        if (seen.contains("error"))
          throw std::runtime_error(side->backend() + ": " + seen["error"].get<std::string>());
        if (round == 0) continue;  // warms up
        speed[side->backend()].push_back(seen["tokens_per_s"].get<double>());
        memory[side->backend()].push_back(seen["resident_mib"].get<double>());
        report["threads"] = seen["threads"];
      }
    }
    const double base = median(speed[sides.front()->backend()]);
    for (const auto& side : sides) {
      const std::string& name = side->backend();
      const double tokens_per_s = median(speed[name]);
      std::cout << fmt::format("{:>5}  {:8} {:>10.0f} {:>9.2f} {:>14.0f}\n", batch, name,
                               tokens_per_s, tokens_per_s / base, memory[name].back())
                << std::flush;
      report["rows"].push_back({{"batch", std::stoi(batch)},
                                {"backend", name},
                                {"tokens_per_s", tokens_per_s},
                                {"all", speed[name]},
                                {"resident_mib", memory[name].back()}});
    }
  }
  if (!arguments.json.empty()) write_file_atomic(arguments.json, report.dump(2) + "\n");
  return 0;
}

}  // namespace
}  // namespace rematch::bench

int main(int argc, char** argv) {
  CLI::App app{
      "Tokens per second and resident memory of the rollout backends, in turns on the same "
      "prompts"};
  rematch::bench::Arguments arguments;
  app.add_option("--model", arguments.model, "Hugging Face directory")->capture_default_str();
  app.add_option("--backends", arguments.backends, "the others are compared with the first")
      ->capture_default_str();
  app.add_option("--batches", arguments.batches, "prompts per call")->capture_default_str();
  app.add_option("--new-tokens", arguments.new_tokens)->capture_default_str();
  app.add_option("--image-px", arguments.image_px, "side of the images")->capture_default_str();
  app.add_option("--rounds", arguments.rounds, "measured rounds, after one warm-up round")
      ->capture_default_str();
  app.add_option("--threads", arguments.threads, "0 = OMP_NUM_THREADS");
  app.add_option("--json", arguments.json, "file to write");
  app.add_option("--side", arguments.side)->group("");
  CLI11_PARSE(app, argc, argv);
  try {
    return arguments.side.empty() ? rematch::bench::compare(arguments, argv)
                                  : rematch::bench::run_side(arguments);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
