// The optimizer step on a device: launches and waits of one process, waits and memory of several
// ranks whose messages lie on the device.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "engine/ranks/stream_waits.h"
#include "learn/mstep/loss_watch.h"
#include "learn/mstep/make_gradient_sum.h"
#include "learn/mstep/optim/adamw.h"
#include "support/pretend_device.h"
#include "support/ranks.h"

namespace rematch {
namespace {

const at::Device kDevice = test::pretend_device();

ParameterGroup parameters(int64_t count, int64_t num_values, at::ScalarType dtype = at::kFloat) {
  ParameterGroup group{"llm", 1e-3, 0.1, {}, {}};
  for (int64_t i = 0; i < count; ++i) {
    group.names.push_back("weight" + std::to_string(i));
    group.parameters.push_back(
        (at::ones({num_values}, dtype) * (i + 1)).to(kDevice).requires_grad_());
  }
  return group;
}

// Gradients of 2 for every value.
void run_backward(const ParameterGroup& group) {
  at::Tensor loss = at::zeros({}, at::TensorOptions(kDevice));
  for (const at::Tensor& parameter : group.parameters)
    loss = loss + (parameter.to(at::kFloat) * 2).sum();
  torch::autograd::backward({loss}, {});
}

/// One rank of many with messages on the device; the others send zeros and flags of zero.
class DeviceGroup : public Group {
 public:
  DeviceGroup(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  at::Device message_device() const override { return kDevice; }
  std::function<void()> start_broadcast(const at::Tensor&, int) override {
    return [this] { stream_waits.add([] {}); };
  }
  std::function<void()> exchange(const at::Tensor& send, const std::vector<int64_t>&,
                                 const at::Tensor& receive, const std::vector<int64_t>&) override {
    ++num_exchanges;
    largest_bytes = std::max(largest_bytes, static_cast<int64_t>(send.nbytes() + receive.nbytes()));
    return [this] { stream_waits.add([] {}); };
  }
  void drain() override { ++num_drains; }
  StreamWaits stream_waits{kDevice};
  int num_exchanges = 0, num_drains = 0;
  int64_t largest_bytes = 0;

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

/// Threads that are ranks, with messages on the device.
class DeviceThreads : public Group {
 public:
  explicit DeviceThreads(Group& ranks) : ranks_(ranks) {}
  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  at::Device message_device() const override { return kDevice; }
  std::function<void()> start_broadcast(const at::Tensor& values, int root) override {
    const at::Tensor on_host = values.cpu();
    return [values, on_host, wait = ranks_.start_broadcast(on_host, root)] {
      wait();
      values.copy_(on_host);
    };
  }
  std::function<void()> exchange(const at::Tensor& send, const std::vector<int64_t>& send_counts,
                                 const at::Tensor& receive,
                                 const std::vector<int64_t>& receive_counts) override {
    const at::Tensor sent = send.cpu(), on_host = receive.cpu();
    return [sent, receive, on_host,
            wait = ranks_.exchange(sent, send_counts, on_host, receive_counts)] {
      wait();
      receive.copy_(on_host);
    };
  }

 protected:
  void sum(std::span<double> values) override { ranks_.all_reduce(values); }
  void sum(std::span<int64_t> values) override { ranks_.all_reduce(values); }
  std::vector<std::string> collect(std::string bytes) override { return ranks_.all_gather(bytes); }
  std::string copy(std::string bytes) override { return ranks_.broadcast(bytes); }
  void copy(at::Tensor& values, int root) override { ranks_.broadcast(values, root); }

 private:
  Group& ranks_;
};

test::Traffic traffic_of(const std::function<void()>& work) {
  const test::Traffic before = test::traffic();
  work();
  return test::traffic() - before;
}

}  // namespace

TEST(StepBudget, AnOptimizerStepOfOneProcess) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    ParameterGroup group = parameters(40, 16, dtype);
    const auto gradients = make_gradient_sum({group});
    AdamW optimizer(gradients->updated_groups(), {});
    gradients->begin({true});
    run_backward(group);
    gradients->end_row();
    const test::Traffic traffic = traffic_of([&] {
      gradients->finish(1.0);
      gradients->update([&] { optimizer.step(1.0); });
    });
    EXPECT_LE(traffic.launches, 12) << "for 40 parameters, " << dtype;
    EXPECT_EQ(traffic.bytes_up, 0);
    EXPECT_LE(traffic.bytes_down, 8) << "the norm and the factor";
    EXPECT_LE(traffic.waits, 1);
    gradients->discard();
  }
}

TEST(StepBudget, AStepWithDeviceMessagesWaitsForNoTensorAlone) {
  std::vector<test::Traffic> steps;
  for (const int64_t count : {8, 64}) {
    ParameterGroup group = parameters(count, 16);
    DeviceGroup ranks(0, 2);
    const auto gradients = make_gradient_sum({group}, ranks, {.zero_stage = 1});
    AdamW optimizer(gradients->updated_groups(), {});
    gradients->begin({true});
    run_backward(group);
    steps.push_back(traffic_of([&] {
      gradients->end_row();
      gradients->finish(1.0);
      gradients->update([&] { optimizer.step(1.0); });
    }));
    EXPECT_EQ(ranks.num_drains, 3) << "before the losses are read, after sums and new values";
    gradients->discard();
  }
  EXPECT_LE(steps[1].launches, 3 * 64 + 8);
  EXPECT_EQ(steps[1].bytes_up, 0);
  EXPECT_LE(steps[1].bytes_down, 4 * 64) << "norms";
  EXPECT_EQ(steps[1].waits, steps[0].waits) << "however many parameters";
  EXPECT_LE(steps[0].waits, 1);
}

TEST(StepBudget, TheHostWaitsForNoMessageOfABackwardPass) {
  ParameterGroup group = parameters(64, 1024);
  DeviceGroup ranks(0, 2);
  const auto gradients = make_gradient_sum({group}, ranks, {.zero_stage = 1, .bucket_bytes = 8192});
  for (int step = 0; step < 2; ++step) {  // the second knows the order of the gradients
    gradients->begin({true});
    test::set_pretend_busy(true);
    ranks.num_exchanges = 0;
    const test::Traffic passed = traffic_of([&] { run_backward(group); });
    EXPECT_GE(ranks.num_exchanges, 12) << "sent while gradients arrive";
    EXPECT_EQ(passed.waits, 0);
    EXPECT_EQ(ranks.stream_waits.take_s(), 0) << "none has ended";
    test::set_pretend_busy(false);
    EXPECT_GE(ranks.stream_waits.take_s(), .010) << "a millisecond each on the pretend device";
    EXPECT_EQ(ranks.stream_waits.take_s(), 0) << "counted once";
    gradients->end_row();
    gradients->finish(1.0);
  }
  EXPECT_EQ(traffic_of([&] { ranks.stream_waits.drain(); }).waits, 1);
  gradients->discard();
}

TEST(StepBudget, AParameterWithoutAGradientOnAnyRankKeepsNone) {
  ParameterGroup group = parameters(4, 16);
  DeviceGroup ranks(0, 2);
  const auto gradients = make_gradient_sum({group}, ranks, {.zero_stage = 1});
  gradients->begin({true});
  ParameterGroup used = group;
  used.parameters.erase(used.parameters.begin() + 1);  // this rank owns weight1 and weight3
  run_backward(used);
  gradients->end_row();
  gradients->finish(1.0);
  for (const ParameterGroup& mine : gradients->owned_groups()) {
    for (size_t i = 0; i < mine.parameters.size(); ++i)
      EXPECT_EQ(mine.parameters[i].grad().defined(), mine.names[i] == "weight3") << mine.names[i];
  }
  gradients->discard();
}

TEST(Sums, OfALargeParameterReachItsOwnerFromAllRanks) {
  test::run_ranks(3, [](Group& threads) {
    DeviceThreads ranks(threads);
    ParameterGroup group{"llm", 1e-3, 0.1, {"large", "small", "unused"}, {}};
    for (const int64_t num_values : {6001, 250, 150})
      group.parameters.push_back(at::ones({num_values}).to(kDevice).requires_grad_());
    const auto gradients = make_gradient_sum({group}, ranks, {.bucket_bytes = 4000});
    for (int step = 0; step < 2; ++step) {
      gradients->begin({true, true});
      for (int row = 0; row < 2; ++row) {
        torch::autograd::backward({(group.parameters[0] * (1 + ranks.rank())).sum()}, {});
        if (ranks.rank() == 1) torch::autograd::backward({group.parameters[1].sum()}, {});
        gradients->end_row();
      }
      EXPECT_NEAR(gradients->finish(0), std::sqrt(12 * 12 * 6001.0 + 2 * 2 * 250.0), 1e-2);
      for (const ParameterGroup& mine : gradients->owned_groups()) {
        for (size_t i = 0; i < mine.names.size(); ++i) {
          const at::Tensor grad = mine.parameters[i].grad();
          ASSERT_EQ(grad.defined(), mine.names[i] != "unused");
          if (!grad.defined()) continue;
          EXPECT_TRUE(grad.cpu().eq(mine.names[i] == "large" ? 12 : 2).all().item<bool>());
        }
      }
      gradients->discard();
    }
  });
}

TEST(MessageMemory, TwoMessagesAreInFlightAndLargeParametersTravelInParts) {
  constexpr int64_t kMib = 1 << 20;
  constexpr int kRanks = 4;
  // One parameter of 160 MiB, which this rank owns, and ten of 20 MiB.
  ParameterGroup group = parameters(1, 40 * kMib);
  const ParameterGroup rest = parameters(10, 5 * kMib);
  group.names.insert(group.names.end(), rest.names.begin(), rest.names.end());
  group.parameters.insert(group.parameters.end(), rest.parameters.begin(), rest.parameters.end());
  DeviceGroup ranks(0, kRanks);
  const auto gradients = make_gradient_sum({group}, ranks, {.zero_stage = 2});
  const int64_t parameters_bytes = 360 * kMib;
  test::set_pretend_capacity(int64_t{8} << 30);
  const int64_t before = test::pretend_memory_use().allocated;
  gradients->begin({true});
  run_backward(group);
  gradients->end_row();
  gradients->finish(1.0);
  const int64_t peak = test::pretend_memory_use().peak_allocated - before;
  EXPECT_LE(ranks.largest_bytes, (kRanks - 1) * 64 * kMib + kMib) << "a part of the large one";
  // The gradients themselves, the sums of this rank, the temporary tensors of backward, two
  // messages.
  EXPECT_LE(peak, 2 * parameters_bytes + 160 * kMib + 2 * (kRanks - 1) * 64 * kMib);
  gradients->discard();
}

TEST(StepBudget, ALossThatIsNotFiniteIsSeenWithoutAWait) {
  LossWatch watch;
  const at::Tensor good = at::ones({}).to(kDevice), bad = at::log(-good);
  const test::Traffic before = test::traffic();
  test::set_pretend_busy(true);
  watch.add(good);
  watch.add(bad);
  watch.add(good);
  EXPECT_FALSE(watch.sees_non_finite()) << "nothing has arrived";
  test::set_pretend_busy(false);
  EXPECT_TRUE(watch.sees_non_finite());
  EXPECT_FALSE(watch.sees_non_finite()) << "told once";
  const test::Traffic traffic = test::traffic() - before;
  EXPECT_EQ(traffic.waits, 0);
  EXPECT_EQ(traffic.launches, 0);
  EXPECT_EQ(traffic.bytes_down, 3 * 4);
}

}  // namespace rematch
