#include "model/oracle_cases.h"

#include <gtest/gtest.h>

namespace rematch::test {
namespace {

at::Tensor logits_TV(const Model& model, const RowInput& row, const VisionInput& images) {
  return model.head_KV(model.forward_TH(row, model.encode_images(images)));
}

void expect_gradients(const Model& model, const OracleAnswers& answers) {
  const std::string name = OracleAnswers::cases().back();
  const RowInput row = answers.row(name);
  for (const NamedParameter& parameter : model.parameters()) parameter.tensor.requires_grad_(true);
  const at::Tensor logits = logits_TV(model, row, answers.images(name, model.description()));
  const auto num_tokens = static_cast<int64_t>(row.token_ids.size());
  const at::Tensor targets =
      at::tensor(row.token_ids, at::TensorOptions().dtype(at::kLong)).narrow(0, 1, num_tokens - 1);
  at::cross_entropy_loss(logits.narrow(0, 0, num_tokens - 1), targets).backward();
  for (const NamedParameter& parameter : model.parameters()) {
    const at::Tensor wanted = answers.gradient(parameter.name);
    const at::Tensor found =
        parameter.tensor.grad().defined() ? parameter.tensor.grad() : at::zeros_like(wanted);
    const double norm = wanted.norm().item<double>();
    EXPECT_LE((found - wanted).norm().item<double>(), 1e-4 * std::max(norm, 1e-6))
        << parameter.name << " of norm " << norm;
  }
}

}  // namespace

const std::vector<std::string>& OracleAnswers::cases() {
  static const std::vector<std::string> kCases = {"text", "one_image", "two_images"};
  return kCases;
}

std::vector<std::string> OracleAnswers::length_cases() const {
  const std::string ending = ".token_ids";
  std::vector<std::string> names;
  for (const std::string& name : file_->names()) {
    if (name.starts_with("length_") && name.ends_with(ending))
      names.push_back(name.substr(0, name.size() - ending.size()));
  }
  return names;
}

RowInput OracleAnswers::row(const std::string& name) const {
  const at::Tensor ids = file_->tensor(name + ".token_ids"),
                   grids = file_->tensor(name + ".grid_thw");
  RowInput row;
  row.token_ids.assign(ids.data_ptr<int64_t>(), ids.data_ptr<int64_t>() + ids.numel());
  row.segment_lens = {ids.numel()};
  row.grids.resize(1);
  for (int64_t i = 0; i < grids.size(0); ++i) {
    row.grids[0].push_back(
        {grids[i][0].item<int64_t>(), grids[i][1].item<int64_t>(), grids[i][2].item<int64_t>()});
  }
  return row;
}

VisionInput OracleAnswers::images(const std::string& name, const ModelDescription& config) const {
  VisionInput images;
  images.grid_thw = row(name).grids[0];
  int64_t num_rows = 0;
  for (const auto& [t, h, w] : images.grid_thw) num_rows += t * h * w;
  const VisionDescription& vision = config.vision;
  images.pixel_values_NC =
      formula_pixels(num_rows, vision.in_channels * vision.temporal_patch_size * vision.patch_size *
                                   vision.patch_size);
  return images;
}

at::Tensor formula_pixels(int64_t num_rows, int64_t width) {
  const auto options = at::TensorOptions().dtype(at::kLong);
  const at::Tensor i = at::arange(num_rows, options).unsqueeze(1),
                   k = at::arange(width, options).unsqueeze(0);
  return ((i * 7919 + k * 104729 + (i * k).remainder(251)).remainder(256).to(at::kFloat) - 127.5) /
         127.5;
}

void expect_equals_transformers(const std::string& model_dir) {
  const auto model = Model::load(model_dir, {});
  const OracleAnswers answers(model_dir);
  std::vector<std::string> names = answers.length_cases();
  names.insert(names.end(), OracleAnswers::cases().begin(), OracleAnswers::cases().end());
  for (const std::string& name : names) {
    const at::Tensor found =
        logits_TV(*model, answers.row(name), answers.images(name, model->description()))
            .slice(1, 0, INT64_MAX, answers.column_stride());
    const at::Tensor wanted = answers.logits(name);
    ASSERT_EQ(found.sizes(), wanted.sizes()) << name;
    EXPECT_LE((found - wanted).abs().max().item<double>(), 3e-5 * wanted.abs().max().item<double>())
        << name;
  }
  expect_gradients(*model, answers);
}

}  // namespace rematch::test
