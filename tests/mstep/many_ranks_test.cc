// One of sixty-four ranks, without the others: who owns what, and how large messages are.
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "mstep/gradient_turns.h"

namespace rematch {
namespace {

/// One rank of many; the others send nothing.
class FakeGroup : public Group {
 public:
  FakeGroup(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void all_reduce(std::span<double>) override {}
  void all_reduce(std::span<int64_t>) override {}
  std::vector<std::string> all_gather(std::string bytes) override { return std::vector<std::string>(static_cast<size_t>(size_), bytes); }
  std::string broadcast(std::string bytes) override { return bytes; }
  void broadcast(at::Tensor&, int) override {}
  std::function<void()> exchange(const at::Tensor& send, const std::vector<int64_t>& send_counts, const at::Tensor& receive,
                                 const std::vector<int64_t>& receive_counts) override {
    num_sent = send.numel();
    num_received = receive.numel();
    const auto before = send_counts.begin() + rank_;
    const int64_t begin = std::accumulate(send_counts.begin(), before, int64_t{0}), own = *before;
    EXPECT_EQ(receive_counts, std::vector<int64_t>(static_cast<size_t>(size_), own));
    receive.narrow(0, rank_ * own, own).copy_(send.narrow(0, begin, own));
    return [] {};
  }
  void barrier() override {}

  int64_t num_sent = 0, num_received = 0;

 private:
  int rank_, size_;
};

/// A LoRA of rank 8 on 36 layers of seven matrices.
ParameterGroup adapter() {
  ParameterGroup group{"llm", 1e-4, 0.0, {}, {}};
  for (int layer = 0; layer < 36; ++layer) {
    for (const int64_t width : {64, 16, 16, 64, 192, 192, 64}) {
      for (const char* side : {"A", "B"}) {
        group.names.push_back("layer" + std::to_string(layer) + "." + std::to_string(group.names.size()) + side);
        group.parameters.push_back(at::ones({8, width}, at::kFloat).requires_grad_());
      }
    }
  }
  return group;
}

}  // namespace

TEST(GradientTurnsOfMany, EveryParameterHasOneOwnerAndSharesAreEven) {
  const ParameterGroup all = adapter();
  int64_t total = 0;
  for (const at::Tensor& parameter : all.parameters) total += parameter.numel();
  std::set<std::string> owned;
  for (int rank = 0; rank < 64; ++rank) {
    FakeGroup group(rank, 64);
    GradientTurns turns({all}, group);
    int64_t share = 0;
    for (const ParameterGroup& mine : turns.owned()) {
      for (const std::string& name : mine.names) EXPECT_TRUE(owned.insert(name).second) << name << " has two owners";
      for (const at::Tensor& parameter : mine.parameters) share += parameter.numel();
    }
    EXPECT_LE(share, total / 64 + 8 * 192) << "no share exceeds the mean by more than the largest tensor";
    for (const at::Tensor& parameter : all.parameters) parameter.mutable_grad() = at::full_like(parameter, 2);
    turns.give();
    turns.finish();
    const int64_t overhead = 64 + std::ssize(all.names);  // a value for each chunk, a flag for each parameter
    EXPECT_EQ(group.num_sent, total + overhead);
    EXPECT_LE(group.num_received, 64 * (share + 1 + std::ssize(turns.owned()[0].names)));
    for (size_t i = 0; i < all.parameters.size(); ++i) {
      const bool is_mine = all.parameters[i].grad().defined();
      EXPECT_TRUE(!is_mine || all.parameters[i].grad().eq(2).all().item<bool>()) << all.names[i];
      all.parameters[i].mutable_grad().reset();
    }
  }
  EXPECT_EQ(owned.size(), all.names.size());
}

}  // namespace rematch
