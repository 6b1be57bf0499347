#include "model/row.h"

#include <gtest/gtest.h>

#include <map>

#include "model/oracle_cases.h"
#include "model/tiny_checkpoint.h"

namespace rematch {
namespace {

constexpr int kImagePad = 366;

// Images by path "HxW" (in patches), each with different pixels.
std::shared_ptr<const Patches> make_pixels(const ImageRef& image) {
  auto patches = std::make_shared<Patches>();
  const int64_t height = image.path[0] - '0', width = image.path[2] - '0';
  patches->grid_thw = {1, height, width};
  patches->row_width = 1536;
  const at::Tensor rows = test::formula_pixels(height * width + height, 1536)
                              .narrow(0, height, height * width)
                              .contiguous();
  patches->pixel_values.assign(rows.data_ptr<float>(), rows.data_ptr<float>() + rows.numel());
  return patches;
}

std::shared_ptr<const Segment> make_segment(int first, int length,
                                            const std::vector<std::string>& images) {
  auto segment = std::make_shared<Segment>();
  for (const std::string& path : images) {
    const int num_pads = (path[0] - '0') * (path[2] - '0') / 4;
    segment->token_ids.push_back(363);
    segment->token_ids.insert(segment->token_ids.end(), static_cast<size_t>(num_pads), kImagePad);
    segment->token_ids.push_back(364);
    segment->images.push_back({.path = path});
  }
  for (int i = 0; i < length; ++i) segment->token_ids.push_back((first * 31 + i * 7) % 350);
  return segment;
}

std::vector<std::shared_ptr<const Segment>> segments() {
  return {make_segment(1, 9, {"4x4"}), make_segment(2, 5, {}), make_segment(3, 30, {"2x6", "4x4"}),
          make_segment(4, 9, {"4x4"}), make_segment(5, 1, {})};
}

// Σ over rows of <hidden, weights>: its gradients depend on every position.
at::Tensor weighted_sum(const at::Tensor& hidden_TH) {
  const int64_t n = hidden_TH.numel();
  return (hidden_TH.flatten() * at::sin(at::arange(n, at::kFloat) * 0.37f + 1)).sum();
}

std::map<std::string, at::Tensor> gradients(const Model& model) {
  std::map<std::string, at::Tensor> found;
  for (const NamedParameter& parameter : model.parameters()) {
    if (parameter.tensor.grad().defined()) found[parameter.name] = parameter.tensor.grad().clone();
    parameter.tensor.mutable_grad() = at::Tensor();
  }
  return found;
}

TEST(ForwardRow, APackedRowEqualsItsSegmentsAloneInValuesAndGradients) {
  const auto model = Model::load(test::tiny_tied(), {});
  for (const NamedParameter& parameter : model->parameters()) parameter.tensor.requires_grad_(true);
  const at::Tensor packed = forward_row(*model, make_row({.segments = segments()}, make_pixels));
  weighted_sum(packed).backward();
  const auto packed_gradients = gradients(*model);

  std::vector<at::Tensor> parts;
  for (const auto& segment : segments())
    parts.push_back(forward_row(*model, make_row({.segments = {segment}}, make_pixels)));
  const at::Tensor alone = at::cat(parts, 0);
  weighted_sum(alone).backward();
  const auto single_gradients = gradients(*model);

  EXPECT_LE((packed - alone).abs().max().item<double>(), 1e-5 * alone.abs().max().item<double>());
  ASSERT_EQ(packed_gradients.size(), single_gradients.size());
  for (const auto& [name, gradient] : single_gradients) {
    EXPECT_LE((packed_gradients.at(name) - gradient).norm().item<double>(),
              1e-5 * std::max(gradient.norm().item<double>(), 1e-6))
        << name;
  }
}

TEST(ForwardRow, ASegmentDoesNotSeeItsNeighbours) {
  const auto model = Model::load(test::tiny_tied(), {});
  auto changed = segments();
  changed[0] = make_segment(77, 9, {"4x4"});
  const at::Tensor before = forward_row(*model, make_row({.segments = segments()}, make_pixels));
  const at::Tensor after = forward_row(*model, make_row({.segments = changed}, make_pixels));
  const int64_t len = segments()[0]->encoded_len();
  EXPECT_GT((before.narrow(0, 0, len) - after.narrow(0, 0, len)).abs().max().item<double>(), 1e-2);
  EXPECT_TRUE(at::equal(before.slice(0, len), after.slice(0, len)));
}

TEST(MakeRow, KeepsOrderOfSegmentsAndImages) {
  const RowBatch batch = make_row({.segments = segments()}, make_pixels);
  EXPECT_EQ(batch.input.segment_lens, (std::vector<int64_t>{15, 5, 41, 15, 1}));
  EXPECT_EQ(batch.input.grids[2], (std::vector<GridThw>{{1, 2, 6}, {1, 4, 4}}));
  EXPECT_TRUE(batch.input.grids[1].empty());
  EXPECT_EQ(batch.images.pixel_values_NC.size(0), 16 + 12 + 16 + 16);
  EXPECT_EQ(batch.images.grid_thw.size(), 4u);
}

}  // namespace
}  // namespace rematch
