#include "model/lora_oracle_cases.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "model/oracle_cases.h"

namespace rematch::test {
namespace {

double error_of(const at::Tensor& found, const at::Tensor& expected) {
  const double scale = std::max(expected.abs().max().item<double>(), 1e-3);
  return (found.detach() - expected).abs().max().item<double>() / scale;
}

}  // namespace

LoraAnswers::LoraAnswers(const std::string& adapter_dir)
    : file_(SafetensorsFile::open(adapter_dir + ".answers.safetensors")) {}

std::vector<std::string> LoraAnswers::names(const std::string& prefix) const {
  std::vector<std::string> names;
  for (const std::string& name : file_->names()) {
    if (name.compare(0, prefix.size(), prefix) == 0) names.push_back(name.substr(prefix.size()));
  }
  return names;
}

at::Tensor recipe_mask(const std::string& module, at::IntArrayRef sizes) {
  const int64_t count = c10::multiply_integers(sizes);
  const at::Tensor index = at::arange(count, at::TensorOptions().dtype(at::kLong)) * 7919 +
                           31 * static_cast<int64_t>(module.size());
  return at::remainder(index, 10).gt(0).view(sizes);
}

RowInput recipe_row(const ModelDescription& config) {
  constexpr int64_t kVisionStart = 363;  // of tiny_tied; the end is the next
  const auto words = [](int64_t start, int64_t count) {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < count; ++i) ids.push_back(5 + (start * 37 + 11 * i) % 350);
    return ids;
  };
  RowInput row;
  const auto append = [&](const std::vector<int64_t>& ids) {
    row.token_ids.insert(row.token_ids.end(), ids.begin(), ids.end());
  };
  const auto image = [&](int64_t num_pads) {
    row.token_ids.push_back(kVisionStart);
    append(std::vector<int64_t>(static_cast<size_t>(num_pads), config.image_token_id));
    row.token_ids.push_back(kVisionStart + 1);
  };
  append(words(4, 2));
  image(4);
  append(words(5, 2));
  image(3);
  append(words(6, 7));
  row.segment_lens = {static_cast<int64_t>(row.token_ids.size())};
  row.grids = {{{1, 4, 4}, {1, 2, 6}}};
  return row;
}

at::Tensor recipe_logits(const Model& model) {
  const RowInput row = recipe_row(model.description());
  const VisionInput images{.pixel_values_NC = formula_pixels(28, 1536), .grid_thw = row.grids[0]};
  return model.head_KV(model.forward_TH(row, model.encode_images(images)));
}

void expect_equals_peft(const std::string& base_dir, const std::string& adapter_dir,
                        bool with_dropout) {
  const LoraAnswers answers(adapter_dir);
  const auto model = Model::load(base_dir, {});
  const auto adapter = Adapter::load(*model, read_peft_adapter(adapter_dir), adapter_dir);
  adapter->dropout().mask = recipe_mask;
  const RowInput row = recipe_row(model->description());
  const at::Tensor token_ids = at::tensor(row.token_ids, at::kLong);
  ASSERT_TRUE(at::equal(token_ids, answers.tensor("token_ids")));

  const RowScope training = with_dropout ? adapter->training_row(0, 0) : RowScope();
  const at::Tensor logits = recipe_logits(*model);
  const int64_t stride = answers.tensor("stride").item<int64_t>();
  EXPECT_LT(error_of(logits.slice(1, 0, std::nullopt, stride), answers.tensor("logits")), 1e-5);
  torch::autograd::backward(
      {at::cross_entropy_loss(logits.narrow(0, 0, logits.size(0) - 1), token_ids.slice(0, 1))}, {});
  double scale = 0;
  for (const std::string& name : answers.names("grad."))
    scale = std::max(scale, answers.tensor("grad." + name).abs().max().item<double>());
  EXPECT_EQ(answers.names("grad.").size(), adapter->parameters().size());
  for (const NamedParameter& parameter : adapter->parameters()) {
    const at::Tensor expected = answers.tensor("grad." + parameter.name);
    const at::Tensor& found = parameter.tensor.grad();
    if (!found.defined()) {
      EXPECT_EQ(expected.abs().max().item<double>(), 0.0) << parameter.name;
      continue;
    }
    EXPECT_EQ(found.scalar_type(), at::kFloat);
    EXPECT_LT((found - expected).abs().max().item<double>(), 1e-5 * scale) << parameter.name;
  }
  EXPECT_FALSE(answers.names("merged.").empty());
  for (const std::string& module : answers.names("merged.")) {
    const std::string name = module + ".weight";
    if (!model->parameter(name).defined()) continue;  // a tied head
    EXPECT_LT(
        error_of(adapter->merge(*model->find_parameter(name)), answers.tensor("merged." + module)),
        1e-5)
        << module;
  }
}

}  // namespace rematch::test
