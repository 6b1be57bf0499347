#include "engine/ranks/group.h"

#include <utility>

#include "base/error.h"
#include "engine/ranks/phase.h"

namespace rematch {
namespace {

class SoloGroup : public Group {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::function<void()> start_broadcast(const at::Tensor&, int root) override {
    REMATCH_CHECK(root == 0);
    return [] {};
  }
  std::function<void()> exchange(const at::Tensor& send, const std::vector<int64_t>&,
                                 const at::Tensor& receive, const std::vector<int64_t>&) override {
    receive.copy_(send);
    return [] {};
  }

 protected:
  void sum(std::span<double>) override {}
  void sum(std::span<int64_t>) override {}
  Strings collect(std::string bytes) override { return {std::move(bytes)}; }
  std::string copy(std::string bytes) override { return bytes; }
  void copy(at::Tensor&, int root) override { REMATCH_CHECK(root == 0); }
};

}  // namespace

int64_t Group::count_failed(bool has_failed) {
  if (has_left_) {
    throw environment_error({.error = "this rank is out of step with the others",
                             .where = std::string("in the phase ") + phase(),
                             .what = "an exchange with them could not be completed",
                             .fix = "look at the first error of this rank"});
  }
  int64_t count = has_failed ? 1 : 0;
  sum(std::span<int64_t>(&count, 1));
  return count;
}

void Group::check_peers() {
  if (!is_in_phase_ || count_failed(false) == 0) return;
  is_in_phase_ = false;
  throw PeerStopped{};
}

void Group::barrier() {
  check_peers();
  if (!is_in_phase_) count_failed(false);
}

std::unique_ptr<Group> Group::split(int size) {
  REMATCH_CHECK(size == 1, "this group cannot be split");
  return std::make_unique<SoloGroup>();
}

Group& alone() {
  static SoloGroup group;
  return group;
}

}  // namespace rematch
