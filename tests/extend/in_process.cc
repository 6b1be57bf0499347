#include "extend/in_process.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"
#include "program/assembly/run.h"

namespace rematch::test {

std::vector<std::map<std::string, double>> trained_with(const std::string& rollout_matching,
                                                        const std::string& custom) {
  const Program program;
  const std::string path =
      program.config("training: {output_dir: " + program.dir().file("out") + "}\ncustom: {" +
                     (custom.empty() ? "" : custom + ", ") + "extra: {rollout_matching: {" +
                     rollout_matching + "}}}\n");
  std::ostringstream out, err;
  {
    Terminal terminal(out, err, {});
    run_training(load_config(path), {.device = "cpu", .terminal = terminal});
  }
  std::vector<std::map<std::string, double>> lines;
  std::istringstream log(read_file(program.run_dir() + "/logging.jsonl"));
  for (std::string line; std::getline(log, line);) {
    const Json values = parse_json(line, "logging.jsonl");
    lines.emplace_back();
    for (const auto& item : values.items()) {
      if (item.value().is_number()) lines.back()[item.key()] = item.value().get<double>();
    }
  }
  return lines;
}

}  // namespace rematch::test
