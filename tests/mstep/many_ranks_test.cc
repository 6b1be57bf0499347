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
  std::function<void()> start_broadcast(const at::Tensor&, int) override {
    return [] {};
  }
  std::function<void()> exchange(const at::Tensor& send, const std::vector<int64_t>& send_counts,
                                 const at::Tensor& receive,
                                 const std::vector<int64_t>& receive_counts) override {
    ++num_exchanges;
    num_sent = send.numel();
    num_received = receive.numel();
    const auto own = static_cast<size_t>(rank_);
    EXPECT_EQ(std::accumulate(send_counts.begin(), send_counts.end(), int64_t{0}), num_sent);
    EXPECT_EQ(std::accumulate(receive_counts.begin(), receive_counts.end(), int64_t{0}),
              num_received);
    EXPECT_EQ(send_counts[own], 1) << "what a rank owns stays with it";
    EXPECT_EQ(receive_counts[own], 1);
    return [] {};
  }

  int64_t num_exchanges = 0, num_sent = 0, num_received = 0;

 protected:
  void sum(std::span<double>) override {}
  void sum(std::span<int64_t>) override {}
  std::vector<std::string> collect(std::string bytes) override {
    return std::vector<std::string>(static_cast<size_t>(size_), bytes);
  }
  std::string copy(std::string bytes) override { return bytes; }
  void copy(at::Tensor&, int) override {}

 private:
  int rank_, size_;
};

/// A LoRA of rank 8 on 36 layers of seven matrices.
ParameterGroup adapter() {
  ParameterGroup group{"llm", 1e-4, 0.0, {}, {}};
  for (int layer = 0; layer < 36; ++layer) {
    for (const int64_t width : {64, 16, 16, 64, 192, 192, 64}) {
      for (const char* side : {"A", "B"}) {
        group.names.push_back("layer" + std::to_string(layer) + "." +
                              std::to_string(group.names.size()) + side);
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
    GradientTurns turns({all}, group, int64_t{1} << 40);
    int64_t share = 0;
    for (const ParameterGroup& mine : turns.owned()) {
      for (const std::string& name : mine.names)
        EXPECT_TRUE(owned.insert(name).second) << name << " has two owners";
      for (const at::Tensor& parameter : mine.parameters) share += parameter.numel();
    }
    EXPECT_LE(share, total / 64 + 8 * 192)
        << "no share exceeds the mean by more than the largest tensor";
    for (const at::Tensor& parameter : all.parameters)
      parameter.mutable_grad() = at::full_like(parameter, 2);
    turns.end_turn();
    turns.finish();
    const int64_t num_owned = std::ssize(turns.owned()[0].names);
    // a value for each chunk, a flag for each parameter
    const int64_t overhead = 64 + std::ssize(all.names) - num_owned;
    EXPECT_EQ(group.num_sent, total - share + overhead);
    EXPECT_EQ(group.num_received, 63 * (share + 1 + num_owned) + 1);
    for (size_t i = 0; i < all.parameters.size(); ++i) {
      const bool is_mine = all.parameters[i].grad().defined();
      EXPECT_TRUE(!is_mine || all.parameters[i].grad().eq(2).all().item<bool>()) << all.names[i];
      all.parameters[i].mutable_grad().reset();
    }
  }
  EXPECT_EQ(owned.size(), all.names.size());
}

TEST(GradientTurnsOfMany, BucketsLeaveDuringTheBackwardPassInTheOrderOfTheFirstOne) {
  FakeGroup group(0, 2);
  // The chain uses them in another order than the group lists them.
  const at::Tensor first = at::ones({4}).requires_grad_(), second = at::ones({4}).requires_grad_(),
                   third = at::ones({4}).requires_grad_();
  GradientTurns turns({{"llm", 1e-4, 0.0, {"third", "first", "second"}, {third, first, second}}},
                      group, 4 * sizeof(float));
  // messages that are on their way when a gradient reaches the input of a link of the chain
  std::vector<int64_t> left;
  const auto link = [&](const at::Tensor& x, const at::Tensor& weight) {
    at::Tensor y = x * weight;
    y.register_hook([&](const at::Tensor&) { left.push_back(group.num_exchanges); });
    return y;
  };
  const auto turn = [&] {
    group.num_exchanges = 0;
    left.clear();
    link(link(link(at::ones({4}), first), second), third).sum().backward();
    turns.end_turn();
    turns.finish();
    EXPECT_EQ(group.num_exchanges, 3) << "one for each bucket, however a turn goes";
  };
  turn();
  turn();
  EXPECT_EQ(left, (std::vector<int64_t>{0, 1, 2}));
}

}  // namespace rematch
