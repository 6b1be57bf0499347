// Our exchange against torch's own data parallelism: c10d::Reducer, which averages, times the
// number of ranks.
#define USE_C10D_GLOO 1
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "learn/mstep/make_gradient_sum.h"
#include "mstep/toy_rows.h"
#include "support/ranks.h"

namespace rematch {
namespace {

constexpr int kRowsOfRank = 3;

/// A bias that the last rank's rows do not use, and one that no row uses.
struct Network {
  std::vector<at::Tensor> parameters{test::random_tensor({8, 16}, 1).requires_grad_(),
                                     test::random_tensor({16, 5}, 2).requires_grad_(),
                                     test::random_tensor({16}, 3).requires_grad_(),
                                     test::random_tensor({5}, 4).requires_grad_()};

  at::Tensor loss(int rank, int size, int row) const {
    const at::Tensor input =
        test::random_tensor({4 + row, 8}, static_cast<uint64_t>(100 + rank * kRowsOfRank + row));
    at::Tensor hidden = input.matmul(parameters[0]).tanh();
    if (rank + 1 < size) hidden = hidden + parameters[2];
    return hidden.matmul(parameters[1]).square().sum() / 7;
  }
};

std::vector<at::Tensor> by_reducer(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                   int size) {
  auto settings = c10d::ProcessGroupGloo::Options::create(std::chrono::seconds(60));
  settings->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  auto group = c10::make_intrusive<c10d::ProcessGroup>(store, rank, size);
  group->setBackend(
      c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO,
      c10::make_intrusive<c10d::ProcessGroupGloo>(
          c10::make_intrusive<c10d::PrefixStore>("reducer", store), rank, size, settings));
  Network network;
  c10d::Reducer reducer(network.parameters, {{3, 2}, {1}, {0}}, group, std::vector<bool>(4, false),
                        1 << 20,
                        /*find_unused_parameters=*/true,
                        /*gradient_as_bucket_view=*/false, {}, 1 << 20, false, false, {});
  for (int row = 0; row < kRowsOfRank; ++row) {
    const at::Tensor loss = network.loss(rank, size, row);
    // the rows before it are accumulated here, as under no_sync
    if (row + 1 == kRowsOfRank) reducer.prepare_for_backward({loss});
    torch::autograd::backward({loss}, {});
  }
  std::vector<at::Tensor> sums;
  for (const at::Tensor& parameter : network.parameters) {
    sums.push_back(parameter.grad().defined() ? parameter.grad() * size
                                              : at::zeros_like(parameter));
  }
  group->barrier()->wait();
  return sums;
}

std::vector<at::Tensor> by_gradient_sum(Group& group, bool exact_ranks) {
  Network network;
  // bytes: several buckets
  const auto gradients =
      make_gradient_sum({{"all", 1.0, 0.0, {"in", "out", "rare", "unused"}, network.parameters}},
                        group, {.exact_ranks = exact_ranks, .bucket_bytes = 1000});
  gradients->begin(std::vector<bool>(kRowsOfRank, true));
  for (int row = 0; row < kRowsOfRank; ++row) {
    torch::autograd::backward({network.loss(group.rank(), group.size(), row)}, {});
    gradients->end_row();
  }
  gradients->finish(0);
  std::vector<at::Tensor> sums;
  gradients->update([&] {
    for (const at::Tensor& parameter : network.parameters) sums.push_back(parameter.grad());
  });
  return sums;
}

}  // namespace

TEST(GradientSumOracle, EqualsTorchsReducerTimesTheNumberOfRanks) {
  for (const bool exact_ranks : {false, true}) {
    for (const int size : {2, 3}) {
      const auto store = c10::make_intrusive<c10d::HashStore>();
      test::run_ranks(size, [&](Group& group) {
        const std::vector<at::Tensor> ours = by_gradient_sum(group, exact_ranks),
                                      theirs = by_reducer(store, group.rank(), size);
        for (size_t i = 0; i < 3; ++i) {
          EXPECT_LE((ours[i] - theirs[i]).norm().item<double>(),
                    1e-6 * theirs[i].norm().item<double>())
              << size << " ranks, exact " << exact_ranks << ", tensor " << i;
        }
        EXPECT_GT(theirs[2].norm().item<double>(), 0);
        EXPECT_FALSE(ours[3].defined()) << "no row uses it";
      });
    }
  }
}

}  // namespace rematch
