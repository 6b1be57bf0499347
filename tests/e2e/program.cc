#include "program.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "base/json.h"

namespace rematch::test {

Program::Program() {
  dir_.write("base.yaml",
             "global_max_length: 1024\n"
             "model:\n  model: " +
                 model() +
                 "\n  torch_dtype: float32\n"
                 "training:\n  output_dir: out\n  run_name: run\n  max_steps: 2\n  "
                 "per_device_train_batch_size: 2\n  gradient_accumulation_steps: "
                 "2\n"
                 "  per_device_eval_batch_size: 4\n  learning_rate: 1.0e-3\n  logging_steps: 1\n  "
                 "eval_strategy: \"no\"\n  report_to: none\n"
                 "custom:\n  trainer_variant: rollout_matching_sft\n  train_jsonl: " +
                 golden("train.jsonl") + "\n  val_jsonl: " + golden("val.jsonl") +
                 "\n"
                 "  extra:\n    rollout_matching:\n      rollout_backend: hf\n      "
                 "rollout_generate_batch_size: 4\n      max_new_tokens: 24\n");
}

std::string Program::config(const std::string& lines) const {
  return dir_.write("run.yaml", "extends: base.yaml\n" + lines);
}

ProcessResult Program::run(const std::string& arguments, const std::string& input) const {
  return start("rematch", arguments, input);
}

ProcessResult Program::run_stage(const std::string& arguments, const std::string& input) const {
  return start("rematch-stages", "stage " + arguments, input);
}

ProcessResult Program::script(const std::string& text) const {
  const std::string path = dir_.write(
      "script.sh", fmt::format("cd {}\nR={}\nsteps() {{ for i in $(seq 6000); do [ \"$(cat "
                               "out/run/logging.jsonl 2>/dev/null | wc -l)\" -ge "
                               "$1 ] && return; sleep 0.05; done; exit 99; }}\n{}\n",
                               dir_.path(), binary_path("bin/rematch"), text));
  return run_command("exec bash " + path);
}

ProcessResult Program::start(const std::string& program, const std::string& arguments,
                             const std::string& input) const {
  return run_command("cd " + dir_.path() + " && " + binary_path("bin/" + program) + " " + arguments,
                     input);
}

std::string Program::log_without_times() const {
  std::istringstream lines(read_file(run_dir() + "/logging.jsonl"));
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    Json kept = Json::object();
    const Json logged = parse_json(line, "logging.jsonl");
    for (const auto& member : logged.items()) {
      const std::string& key = member.key();
      const bool timed = key.rfind("time/", 0) == 0 || key.find("_per_s") != std::string::npos ||
                         key == "eval_runtime";
      if (!timed) kept[key] = member.value();
    }
    text += kept.dump() + "\n";
  }
  return text;
}

}  // namespace rematch::test
