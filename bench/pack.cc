// Times the selectors on the buffers it is given; bench/pack.py draws them, times the Python functions of the same rules and compares.
//
// Standard input: JSON lines {packing_length, encoded_lens}. Standard output: for each, {selector: {seconds, selected}}.
#include <chrono>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"
#include "pack/select.h"

int main() {
  using namespace rematch;
  try {
    for (std::string line; std::getline(std::cin, line);) {
      const Json buffer = parse_json(line, "standard input");
      const auto encoded_lens = buffer["encoded_lens"].get<std::vector<int>>();
      const int packing_length = buffer["packing_length"].get<int>();
      Json answer;
      for (const char* name : {"fifo", "binpacking", "optimal"}) {
        const PackingSelector selector = packing_selector(name);
        const auto start = std::chrono::steady_clock::now();
        const Selection selection = select_segments(selector, encoded_lens, packing_length);
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
        answer[name]["seconds"] = elapsed.count();
        answer[name]["selected"] = selection.indices;
      }
      std::cout << answer.dump() << '\n';
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
