#include "dist/group.h"

#include <fmt/core.h>

#include <utility>

#include "base/error.h"

namespace rematch {
namespace {

class SoloGroup : public Group {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce(std::span<double>) override {}
  void all_reduce(std::span<int64_t>) override {}
  std::vector<std::string> gather(std::string bytes) override { return {std::move(bytes)}; }
  std::string broadcast(std::string bytes) override { return bytes; }
  void barrier() override {}
};

}  // namespace

Group& alone() {
  static SoloGroup group;
  return group;
}

Group& group_of(const World& world) {
  REMATCH_CHECK(world.size == 1 && world.rank == 0, fmt::format("rank {} of {}", world.rank, world.size));
  return alone();
}

}  // namespace rematch
