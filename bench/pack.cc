// Times the selectors on the buffers it is given; bench/pack.py draws them, times the Python
// functions of the same rules and compares.
//
// Standard input: JSON lines {packing_length, encoded_lens}. Standard output: for each, {selector:
// {seconds, selected}}.
#include <chrono>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"
#include "learn/pack/select.h"

namespace rematch::bench {
namespace {

struct Buffer {
  std::vector<int> encoded_lens;
  int packing_length = 0;
};

std::vector<Buffer> read_buffers(std::istream& in) {
  std::vector<Buffer> buffers;
  for (std::string line; std::getline(in, line);) {
    const Json buffer = parse_json(line, "standard input");
    buffers.push_back(
        {buffer["encoded_lens"].get<std::vector<int>>(), buffer["packing_length"].get<int>()});
  }
  return buffers;
}

Json timed(const Buffer& buffer) {
  Json answer;
  for (const char* name : {"fifo", "binpacking", "optimal"}) {
    const PackingSelector selector = packing_selector(name);
    const auto start = std::chrono::steady_clock::now();
    const Selection selection =
        select_segments(selector, buffer.encoded_lens, buffer.packing_length);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    answer[name]["seconds"] = elapsed.count();
    answer[name]["selected"] = selection.indices;
  }
  return answer;
}

void run() {
  const std::vector<Buffer> buffers = read_buffers(std::cin);
  // a process's first calls mostly wait for memory from the system
  for (const Buffer& buffer : buffers) timed(buffer);
  for (const Buffer& buffer : buffers) std::cout << timed(buffer).dump() << '\n';
}

}  // namespace
}  // namespace rematch::bench

int main() {
  try {
    rematch::bench::run();
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
