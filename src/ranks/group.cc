#include "ranks/group.h"

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
  std::vector<std::string> all_gather(std::string bytes) override { return {std::move(bytes)}; }
  std::string broadcast(std::string bytes) override { return bytes; }
  void broadcast(at::Tensor&, int root) override { REMATCH_CHECK(root == 0); }
  std::function<void()> start_broadcast(const at::Tensor&, int root) override {
    REMATCH_CHECK(root == 0);
    return [] {};
  }
  std::function<void()> exchange(const at::Tensor& send, const std::vector<int64_t>&,
                                 const at::Tensor& receive, const std::vector<int64_t>&) override {
    receive.copy_(send);
    return [] {};
  }
  void barrier() override {}
};

}  // namespace

std::unique_ptr<Group> Group::split(int size) {
  REMATCH_CHECK(size == 1, "this group has no parts");
  return std::make_unique<SoloGroup>();
}

Group& alone() {
  static SoloGroup group;
  return group;
}

}  // namespace rematch
