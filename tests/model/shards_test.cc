// Frozen weights of which each rank holds a part: the bits of a model that is whole.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "engine/ranks/frozen_shards.h"
#include "engine/ranks/phase.h"
#include "model/adapter.h"
#include "model/oracle_cases.h"
#include "model/tiny_checkpoint.h"
#include "nn/memory_meter.h"
#include "support/ranks.h"

namespace rematch {
namespace {

using Gradients = std::map<std::string, at::Tensor>;

struct Case {
  std::string base;
  bool use_dora = false;
  Checkpointing checkpointing = Checkpointing::kOff;
  at::ScalarType dtype = at::kFloat;
  AdapterTargets targets = {};
  double dropout = 0.3;
};

std::shared_ptr<Model> load(const Case& of, const std::shared_ptr<BlockWeights>& blocks) {
  auto model = Model::load(
      of.base, {.dtype = of.dtype, .gradient_checkpointing = of.checkpointing, .blocks = blocks});
  std::vector<std::string> names;
  for (const NamedParameter& parameter : model->parameters()) names.push_back(parameter.name);
  const auto adapter =
      Adapter::create(*model, select_targets(model->description(), names, of.targets),
                      {.lora = {.rank = 4, .dropout = of.dropout, .use_dora = of.use_dora},
                       .seed = 7,
                       .base_model = "x"});
  for (const NamedParameter& parameter : adapter->parameters()) {
    if (parameter.name.find("lora_B") == std::string::npos) continue;
    const at::NoGradGuard no_grad;
    const int64_t size = parameter.tensor.numel();
    parameter.tensor.copy_(
        at::sin(at::arange(size, at::kFloat)).mul_(0.05).view(parameter.tensor.sizes()));
  }
  return model;
}

/// Row `index`, of another length than the others.
RowInput text_row(int64_t index) {
  RowInput row{.token_ids = {}, .segment_lens = {60 + index, 40}};
  const int64_t num_tokens = std::reduce(row.segment_lens.begin(), row.segment_lens.end());
  for (int64_t i = 0; i < num_tokens; ++i) row.token_ids.push_back(2 + i * 7 % 19);
  return row;
}

void add_gradients(const Model& model, int64_t index, const at::Tensor& hidden_TH,
                   Gradients& found) {
  const at::Tensor logits = model.head_KV(hidden_TH.slice(0, 0, INT64_MAX, 9));
  torch::autograd::backward(
      {(logits.flatten() * at::sin(at::arange(logits.numel(), at::kFloat) * 0.37f)).sum()}, {});
  for (const NamedParameter& parameter : model.adapter()->parameters()) {
    if (parameter.tensor.grad().defined())
      found[std::to_string(index) + " " + parameter.name] =
          std::exchange(parameter.tensor.mutable_grad(), {});
  }
}

/// Trains on `num_rows` rows; then adds those of an evaluation, as "hidden" and "logits".
Gradients run_rows(const Model& model, const Case& of, int64_t num_rows) {
  Gradients found;
  for (int64_t index = 0; index < num_rows; ++index) {
    const auto training = model.adapter()->training_row(3, index);
    add_gradients(model, index, model.forward_TH(text_row(index), {}), found);
  }
  if (num_rows > 1) {  // with images, on some of the ranks
    const test::OracleAnswers answers(of.base);
    const std::string name = test::OracleAnswers::cases().back();
    add_gradients(model, num_rows,
                  model.forward_TH(answers.row(name),
                                   model.encode_images(answers.images(name, model.description()))),
                  found);
  }
  const at::NoGradGuard no_grad;
  found["hidden"] = model.forward_TH(text_row(num_rows), {});
  found["logits"] = model.head_KV(found["hidden"]);
  return found;
}

void expect_same_bits(const Gradients& found, const Gradients& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (const auto& [name, gradient] : wanted) {
    ASSERT_TRUE(found.contains(name)) << name;
    EXPECT_TRUE(at::equal(found.at(name), gradient)) << name;
  }
}

void expect_the_bits_of_whole_weights(const Case& of, int num_ranks) {
  at::set_num_threads(1);
  std::vector<Gradients> wanted;
  for (int rank = 0; rank < num_ranks; ++rank)
    wanted.push_back(run_rows(*load(of, nullptr), of, rank % 3));
  std::mutex mutex;
  test::run_ranks(num_ranks, [&](Group& group) {
    const auto blocks = std::make_shared<FrozenShards>(group, at::kCPU);
    const auto model = load(of, blocks);
    const Gradients found = run_rows(*model, of, group.rank() % 3);  // rank 0 trains on no row
    blocks->meet();
    const std::lock_guard<std::mutex> lock(mutex);
    expect_same_bits(found, wanted[static_cast<size_t>(group.rank())]);
  });
}

/// Counts the values that are read, and sees that none are read before.
class CountedReads : public FrozenShards {
 public:
  using FrozenShards::FrozenShards;
  size_t hold(const std::vector<at::Tensor>& tensors, const Read& read) override {
    num_bytes += 256;  // of the parts' ends
    for (const at::Tensor& tensor : tensors) {
      EXPECT_EQ(tensor.storage().nbytes(), 0u);
      num_in_blocks += tensor.numel();
      num_bytes += static_cast<int64_t>(tensor.nbytes() + 63) / 64 * 64;
    }
    return FrozenShards::hold(tensors, [&](size_t i, int64_t begin, int64_t count) {
      num_read += count;
      most_at_once = std::max(most_at_once, count);
      return read(i, begin, count);
    });
  }

  int64_t num_in_blocks = 0, num_read = 0, most_at_once = 0;  ///< values
  int64_t num_bytes = 0;                                      ///< of all parts, at most
};

}  // namespace

TEST(FrozenShards, GiveTheBitsOfWholeWeightsInEveryFamily) {
  for (const std::string& base :
       {test::tiny_tied(), test::tiny_untied(), test::windows_tied(), test::delta_tied()}) {
    for (const bool use_dora : {false, true}) {
      for (const Checkpointing checkpointing :
           {Checkpointing::kOff, Checkpointing::kOn, Checkpointing::kSelective}) {
        SCOPED_TRACE(base + (use_dora ? " dora" : " lora"));
        expect_the_bits_of_whole_weights({base, use_dora, checkpointing}, 3);
      }
    }
  }
}

TEST(FrozenShards, GiveTheSameBitsOnFourRanksAndInBfloat16) {
  for (const bool use_dora : {false, true}) {
    const Case of{test::tiny_tied(), use_dora, Checkpointing::kOn, at::kBFloat16};
    expect_the_bits_of_whole_weights(of, 4);
    expect_the_bits_of_whole_weights({test::delta_tied(), use_dora}, 4);
  }
}

TEST(FrozenShards, HoldTheEmbeddingAndTheHeadThatNothingTrains) {
  AdapterTargets tokens, saved, both;
  tokens.token_ids = {3, 5};
  saved.modules_to_save = {"lm_head"};
  both.target_modules = {"lm_head", "q_proj"};
  const auto held = [](const Case& of) {
    std::string found;
    test::run_ranks(2, [&](Group& group) {
      const auto model = load(of, std::make_shared<FrozenShards>(group, at::kCPU));
      if (group.rank() == 1) return;
      for (const char* name : {test::kEmbedding, test::kHead}) {
        const NamedParameter* parameter = model->find_parameter(name);
        found += parameter == nullptr ? "-" : parameter->need ? "held " : "here ";
      }
    });
    return found;
  };
  EXPECT_EQ(held({.base = test::tiny_tied()}), "held -");
  EXPECT_EQ(held({.base = test::tiny_tied(), .targets = tokens}), "here -");
  for (const auto& [targets, wanted] :
       {std::pair(AdapterTargets(), "held held "), std::pair(tokens, "here here "),
        std::pair(saved, "held here "), std::pair(both, "held here ")}) {
    const Case of{.base = test::tiny_untied(), .targets = targets, .dropout = 0};
    EXPECT_EQ(held(of), wanted);
    expect_the_bits_of_whole_weights(of, 2);
  }
}

TEST(FrozenShards, HoldTheBlocksOfTheVisionTower) {
  test::run_ranks(2, [&](Group& group) {
    for (const std::string& base : {test::tiny_tied(), test::windows_tied(), test::delta_tied()}) {
      const auto model = Model::load(
          base, {.blocks = std::make_shared<FrozenShards>(group, at::Device(at::kCPU))});
      for (const NamedParameter& parameter : model->parameters()) {
        const bool is_in_block = parameter.name.find(".blocks.") != std::string::npos ||
                                 parameter.name.find(".layers.") != std::string::npos;
        EXPECT_EQ(static_cast<bool>(parameter.need), is_in_block) << parameter.name;
      }
    }
  });
}

// In memory: its parts, the weights outside blocks, and a range of one tensor.
TEST(FrozenShards, LoadingReadsTheRanksPartAlone) {
  constexpr int kRanks = 4;
  for (const std::string& base : {test::tiny_tied(), test::windows_tied(), test::delta_tied()}) {
    SCOPED_TRACE(base);
    std::atomic<int64_t> num_read = 0, num_in_blocks = 0;
    test::run_ranks(kRanks, [&](Group& group) {
      const auto blocks = std::make_shared<CountedReads>(group, at::kCPU);
      const test::MemoryMeter meter;
      const auto model = Model::load(base, {.dtype = at::kBFloat16, .blocks = blocks});
      int64_t rest = 0;
      for (const NamedParameter& parameter : model->parameters())
        rest += parameter.need ? 0 : static_cast<int64_t>(parameter.tensor.nbytes());
      EXPECT_LE(meter.peak_bytes(), rest + blocks->num_bytes / kRanks + 4 * blocks->most_at_once);
      num_read += blocks->num_read;
      num_in_blocks += blocks->num_in_blocks;
    });
    EXPECT_EQ(num_read, num_in_blocks / kRanks) << "every value by one rank";
  }
}

TEST(FrozenShards, AWeightHasNoValuesWhileAnotherBlockIsWhole) {
  test::run_ranks(2, [&](Group& group) {
    const auto blocks = std::make_shared<FrozenShards>(group, at::kCPU);
    const at::Tensor whole = at::arange(100, at::kFloat), first = whole.clone(),
                     second = whole.to(at::kBFloat16), third = at::ones({3, 5});
    const auto hold = [&](const std::vector<at::Tensor>& tensors) {
      std::vector<at::Tensor> values;
      for (const at::Tensor& tensor : tensors) values.push_back(tensor.clone().flatten());
      return blocks->hold(tensors, [&](size_t i, int64_t begin, int64_t count) {
        return values[i].narrow(0, begin, count);
      });
    };
    EXPECT_EQ(hold({first, third}), 0u);
    EXPECT_EQ(hold({second}), 1u);
    EXPECT_EQ(first.const_data_ptr(), nullptr);
    blocks->need(0);
    EXPECT_TRUE(first.equal(whole) && third.equal(at::ones({3, 5})));
    EXPECT_EQ(second.const_data_ptr(), nullptr);
    blocks->need(1);
    EXPECT_TRUE(second.equal(whole.to(at::kBFloat16)));
    EXPECT_EQ(first.const_data_ptr(), nullptr);
  });
}

// Every rank fails, in need(), in its backward pass or in meet(), and with the error of the first.
TEST(FrozenShards, AFailureOnOneRankEndsTheOthersInTheirGathers) {
  test::run_ranks(3, [&](Group& group) {
    const Case of{.base = test::tiny_tied(), .checkpointing = Checkpointing::kOn};
    const auto blocks = std::make_shared<FrozenShards>(group, at::kCPU);
    const auto model = load(of, blocks);
    const auto body = [&] {
      Gradients found;
      if (group.rank() == 1) {
        const at::Tensor hidden = model->forward_TH(text_row(0), {});
        throw UserError(ErrorKind::kData, {.error = "planted", .where = "", .what = "", .fix = ""});
      }
      if (group.rank() == 0) add_gradients(*model, 0, model->forward_TH(text_row(0), {}), found);
      blocks->meet();
    };
    try {
      together(group, body);
      ADD_FAILURE() << "rank " << group.rank() << " did not fail";
    } catch (const UserError& error) {
      EXPECT_NE(error.problems().front().error.find("planted"), std::string::npos)
          << error.problems().front().error;
    }
    // and the next rows are as if nothing had happened
    Gradients found = run_rows(*model, of, group.rank());
    blocks->meet();
    EXPECT_EQ(found.count("hidden"), 1u);
  });
}

}  // namespace rematch
