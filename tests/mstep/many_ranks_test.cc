// One of many ranks, without the others: who owns what, and how large messages are.
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "learn/mstep/make_gradient_sum.h"

namespace rematch {
namespace {

/// One rank of many; the others send no gradients.
class FakeGroup : public Group {
 public:
  FakeGroup(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::function<void()> start_broadcast(const at::Tensor& values, int root) override {
    if (root == rank_) num_shared += values.numel() * (size_ - 1);
    shared_bytes += static_cast<int64_t>(values.nbytes());
    if (root != rank_) values.fill_(1);  // flags too: every parameter has a value
    return [] {};
  }
  std::function<void()> exchange(const at::Tensor& send, const std::vector<int64_t>& send_counts,
                                 const at::Tensor& receive,
                                 const std::vector<int64_t>& receive_counts) override {
    ++num_exchanges;
    sizes.push_back(send_counts);
    num_sent += send.numel() - 1;  // without the placeholder for itself
    num_received += receive.numel() - 1;
    const auto own = static_cast<size_t>(rank_);
    EXPECT_EQ(std::accumulate(send_counts.begin(), send_counts.end(), int64_t{0}), send.numel());
    EXPECT_EQ(std::accumulate(receive_counts.begin(), receive_counts.end(), int64_t{0}),
              receive.numel());
    EXPECT_EQ(send_counts[own], 1) << "what a rank owns stays with it";
    EXPECT_EQ(receive_counts[own], 1);
    return [] {};
  }

  std::vector<std::vector<int64_t>> sizes;  ///< of each message, by receiver
  int64_t num_exchanges = 0, num_sent = 0, num_received = 0, num_shared = 0, shared_bytes = 0;

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

/// A step of `num_rows` rows; the gradient of every value of a row is 2.
void run_step(GradientSum& gradients, const ParameterGroup& all, int num_rows) {
  gradients.begin(std::vector<bool>(static_cast<size_t>(num_rows), true));
  for (int row = 0; row < num_rows; ++row) {
    at::Tensor loss = at::zeros({});
    for (const at::Tensor& parameter : all.parameters) loss = loss + parameter.sum() * 2;
    loss.backward();
    gradients.end_row();
  }
  gradients.finish(0);
}

}  // namespace

TEST(GradientSumOfMany, EveryParameterHasOneOwnerAndOwnersAreBalanced) {
  const ParameterGroup all = adapter();
  int64_t total = 0;
  for (const at::Tensor& parameter : all.parameters) total += parameter.numel();
  std::set<std::string> owned;
  for (int rank = 0; rank < 64; ++rank) {
    FakeGroup group(rank, 64);
    const auto gradients = make_gradient_sum({all}, group, {.bucket_bytes = int64_t{1} << 40});
    int64_t share = 0;
    for (const ParameterGroup& mine : gradients->owned_groups()) {
      for (const std::string& name : mine.names)
        EXPECT_TRUE(owned.insert(name).second) << name << " has two owners";
      for (const at::Tensor& parameter : mine.parameters) share += parameter.numel();
    }
    EXPECT_LE(share, total / 64 + 8 * 192)
        << "no share exceeds the mean by more than the largest tensor";

    run_step(*gradients, all, 1);
    const int64_t num_owned = std::ssize(gradients->owned_groups()[0].names);
    // a value for each chunk, a flag for each parameter
    const int64_t overhead = 63 + std::ssize(all.names) - num_owned;
    EXPECT_EQ(group.num_sent, total - share + overhead);
    EXPECT_EQ(group.num_received, 63 * (share + 1 + num_owned));
    for (size_t i = 0; i < all.parameters.size(); ++i) {
      const at::Tensor& grad = all.parameters[i].grad();
      EXPECT_TRUE(!grad.defined() || grad.eq(2).all().item<bool>()) << all.names[i];
    }
    gradients->discard();
  }
  EXPECT_EQ(owned.size(), all.names.size());
}

TEST(GradientSumOfMany, TrafficIsThatOfDataParallelismForAnyNumberOfRows) {
  constexpr int kRanks = 4;
  const ParameterGroup all = adapter();
  int64_t total = 0;
  for (const at::Tensor& parameter : all.parameters) total += parameter.numel();
  // a ring's reduce-scatter and all-gather: each sends 2 (N − 1) / N of the gradients
  const int64_t least = 2 * total * (kRanks - 1);
  for (const int zero_stage : {0, 1}) {
    for (const int num_rows : {1, 4}) {
      int64_t once = 0, by_row = 0;
      for (int rank = 0; rank < kRanks; ++rank) {
        for (const bool exact_ranks : {false, true}) {
          FakeGroup group(rank, kRanks);
          const auto gradients = make_gradient_sum(
              {all}, group, {.exact_ranks = exact_ranks, .zero_stage = zero_stage});
          run_step(*gradients, all, num_rows);
          gradients->update([] {});
          gradients->discard();
          (exact_ranks ? by_row : once) += group.num_sent + group.num_shared;
        }
      }
      EXPECT_GE(once, least);
      EXPECT_LE(static_cast<double>(once), 1.01 * static_cast<double>(least)) << num_rows;
      EXPECT_NEAR(static_cast<double>(by_row) / static_cast<double>(once), (num_rows + 1) / 2.0,
                  0.01)
          << num_rows;
    }
  }
}

/// Values of a Qwen3-VL text model in thousandths: embedding, layers, head.
ParameterGroup decoder(int64_t hidden, int64_t intermediate, int num_layers, bool tied) {
  ParameterGroup group{"llm", 1e-5, 0.0, {}, {}};
  const auto add = [&](int64_t num_values) {
    group.names.push_back(std::to_string(group.names.size()));
    group.parameters.push_back(
        at::ones({std::max<int64_t>(1, num_values / 1000)}).requires_grad_());
  };
  add(151936 * hidden);
  for (int layer = 0; layer < num_layers; ++layer) {
    for (const int64_t rows : {int64_t{1}, hidden, int64_t{1024}, int64_t{1024}, hidden, int64_t{1},
                               intermediate, intermediate, intermediate})
      add(rows * hidden);
  }
  add(hidden);
  if (!tied) add(151936 * hidden);
  return group;
}

// A link carries (N − 1) times what its rank receives from each other one. At the end an owner gets
// its sums of the embedding, once.
TEST(GradientSumOfMany, MessagesUseEveryLink) {
  for (const ParameterGroup& all :
       {decoder(2048, 6144, 28, true), decoder(4096, 12288, 36, false)}) {
    for (const int size : {4, 8, 16}) {
      FakeGroup group(size - 1, size);
      const auto gradients = make_gradient_sum({all}, group, {.bucket_bytes = (25 << 20) / 1000});
      run_step(*gradients, all, 1);  // shows the order of arrival
      group.sizes.clear();
      run_step(*gradients, all, 1);
      int64_t total = 0, uneven = 0, most = 0;
      for (std::vector<int64_t>& counts : group.sizes) {
        counts.pop_back();  // of this rank itself
        const int64_t largest = *std::max_element(counts.begin(), counts.end()),
                      sum = std::accumulate(counts.begin(), counts.end(), int64_t{0});
        total += sum;
        most += largest;
        if (largest * (size - 1) > 2 * sum) uneven += sum;
      }
      const int64_t of_embedding = all.parameters.front().numel() / size;
      EXPECT_LE(uneven, of_embedding * 8 / 5) << size;
      EXPECT_LE(most, 2 * total / (size - 1) + of_embedding) << size;
      gradients->discard();
    }
  }
}

TEST(GradientSumOfMany, NewValuesAreSentAsTheyAreStored) {
  const auto shared_bytes = [](const std::vector<at::ScalarType>& dtypes) {
    ParameterGroup all{"llm", 1e-4, 0.0, {}, {}};
    for (const at::ScalarType dtype : dtypes) {
      all.names.push_back(std::to_string(all.names.size()));
      all.parameters.push_back(at::ones({1000}, dtype).requires_grad_());
    }
    FakeGroup group(0, 2);
    const auto gradients = make_gradient_sum({all}, group, {.zero_stage = 1, .bucket_bytes = 4000});
    run_step(*gradients, all, 1);
    gradients->update([] {});
    gradients->discard();
    return group.shared_bytes;
  };
  const int64_t as_float = shared_bytes(std::vector(8, at::kFloat));
  EXPECT_EQ(2 * shared_bytes(std::vector(8, at::kBFloat16)), as_float);
  // float32 is sent where it is stored (the decay of Qwen3.5's delta layers), not for all
  std::vector<at::ScalarType> mixed(8, at::kBFloat16);
  mixed[5] = at::kFloat;
  EXPECT_LE(16 * shared_bytes(mixed), 9.1 * static_cast<double>(as_float));
}

TEST(GradientSumOfMany, BucketsAreSentDuringTheLastPassInTheOrderOfTheFirst) {
  // The chain uses them in another order than the group lists them.
  const at::Tensor first = at::ones({4}).requires_grad_(), second = at::ones({4}).requires_grad_(),
                   third = at::ones({4}).requires_grad_();
  for (const bool exact_ranks : {false, true}) {
    FakeGroup group(0, 2);
    const auto gradients = make_gradient_sum(
        {{"llm", 1e-4, 0.0, {"first", "third", "second"}, {first, third, second}}}, group,
        {.exact_ranks = exact_ranks, .bucket_bytes = 4 * sizeof(float)});
    // messages that are on their way when a gradient reaches the input of a link of the chain
    std::vector<int64_t> left;
    const auto link = [&](const at::Tensor& x, const at::Tensor& weight) {
      at::Tensor y = x * weight;
      y.register_hook([&](const at::Tensor&) { left.push_back(group.num_exchanges); });
      return y;
    };
    const auto run_rows = [&] {
      group.num_exchanges = 0;
      left.clear();
      gradients->begin({true, true, false});
      for (int row = 0; row < 2; ++row) {
        link(link(link(at::ones({4}), first), second), third).sum().backward();
        gradients->end_row();
      }
      gradients->end_row();
      gradients->finish(0);
    };
    run_rows();
    run_rows();
    using Counts = std::vector<int64_t>;
    // The gradients of `third` and `second`, of two owners, are one message.
    EXPECT_EQ(left, exact_ranks ? Counts({0, 0, 1, 2, 2, 3}) : Counts({0, 0, 0, 0, 0, 1}));
    EXPECT_EQ(group.num_exchanges, exact_ranks ? 6 : 2) << "one per bucket and round";
    gradients->discard();
  }
}

}  // namespace rematch
