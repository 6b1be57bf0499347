#include "engine/rollout/native/cpu/vision.h"

#include <ATen/Parallel.h>
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/interrupt.h"
#include "model/adapter.h"
#include "model/tiny_checkpoint.h"

namespace rematch {
namespace {

constexpr GridThw kGrids[] = {{1, 2, 2}, {1, 4, 6}, {1, 16, 16}, {1, 18, 34}, {2, 4, 4}};

at::Tensor pixels_of(const Model& model, const GridThw& grid) {
  const VisionDescription& config = model.description().vision;
  at::manual_seed(3);
  return at::randn({grid[0] * grid[1] * grid[2], config.in_channels * config.temporal_patch_size *
                                                     config.patch_size * config.patch_size});
}

VisionFeatures encode(CpuVision& vision, const at::Tensor& pixels, const GridThw& grid) {
  const CpuVision::Image image{pixels.const_data_ptr<float>(), grid};
  return vision.encode({&image, 1}).front();
}

std::vector<at::Tensor> all(const VisionFeatures& features) {
  std::vector<at::Tensor> tensors{features.embeds_MH};
  tensors.insert(tensors.end(), features.deepstack_MH.begin(), features.deepstack_MH.end());
  return tensors;
}

void expect_near(const VisionFeatures& found, const VisionFeatures& wanted, double tolerance) {
  ASSERT_EQ(all(found).size(), all(wanted).size());
  for (size_t i = 0; i < all(found).size(); ++i) {
    const at::Tensor a = all(found)[i], b = all(wanted)[i].to(at::kFloat);
    ASSERT_EQ(a.sizes(), b.sizes());
    EXPECT_LE((a - b).abs().max().item<float>(), tolerance * b.abs().max().item<float>())
        << "feature " << i;
  }
}

void expect_same(const VisionFeatures& found, const VisionFeatures& wanted) {
  for (size_t i = 0; i < all(wanted).size(); ++i)
    EXPECT_TRUE(at::equal(all(found)[i], all(wanted)[i])) << "feature " << i;
}

}  // namespace

TEST(CpuVision, GivesTheTowersFeatures) {
  const at::NoGradGuard no_grad;
  for (const std::string& directory :
       {test::tiny_tied(), test::tiny_untied(), test::windows_tied(), test::windows_untied(),
        test::source_path("tests/shapes/model")}) {
    const std::shared_ptr<Model> model = Model::load(directory, {});
    CpuVision vision(model);
    for (const auto& grid : kGrids) {
      SCOPED_TRACE(fmt::format("{}, {}x{}x{}", directory, grid[0], grid[1], grid[2]));
      const at::Tensor pixels = pixels_of(*model, grid);
      expect_near(encode(vision, pixels, grid), model->encode_images({pixels, {grid}}), 1e-5);
    }
  }
}

TEST(CpuVision, AnInterruptEndsThePass) {
  const std::shared_ptr<Model> model = Model::load(test::tiny_tied(), {});
  CpuVision vision(model);
  const at::Tensor pixels = pixels_of(*model, kGrids[0]);
  const VisionFeatures wanted = encode(vision, pixels, kGrids[0]);
  set_interrupt_requested(true);
  EXPECT_THROW(encode(vision, pixels, kGrids[0]), Interrupted);
  set_interrupt_requested(false);
  expect_same(encode(vision, pixels, kGrids[0]), wanted);
}

TEST(CpuVision, GivesTheSameBitsForAnyNumberOfThreadsAndAfterAnyImage) {
  const int before = at::get_num_threads();
  for (const std::string& directory :
       {test::source_path("tests/shapes/model"), test::windows_tied()}) {
    const std::shared_ptr<Model> model = Model::load(directory, {});
    for (const auto& grid : kGrids) {
      const at::Tensor pixels = pixels_of(*model, grid);
      at::set_num_threads(1);
      CpuVision fresh(model);
      const VisionFeatures wanted = encode(fresh, pixels, grid);
      CpuVision vision(model);
      encode(vision, pixels_of(*model, {1, 6, 8}), {1, 6, 8});
      for (const int count : {1, 2, 3}) {
        at::set_num_threads(count);
        expect_same(encode(vision, pixels, grid), wanted);
      }
    }
  }
  at::set_num_threads(before);
}

TEST(CpuVision, GivesEachImageOfManyWhatItGivesAlone) {
  const std::shared_ptr<Model> model = Model::load(test::source_path("tests/shapes/model"), {});
  const int before = at::get_num_threads();
  CpuVision vision(model);
  std::vector<at::Tensor> pixels;
  std::vector<CpuVision::Image> images;
  std::vector<VisionFeatures> alone;
  for (const auto& grid : kGrids) {
    pixels.push_back(pixels_of(*model, grid));
    images.push_back({pixels.back().const_data_ptr<float>(), grid});
    alone.push_back(encode(vision, pixels.back(), grid));
  }
  for (const int count : {1, 2, 3, 8}) {  // 8: threads share an image
    at::set_num_threads(count);
    const std::vector<VisionFeatures> together = vision.encode(images);
    ASSERT_EQ(together.size(), images.size());
    for (size_t i = 0; i < images.size(); ++i) expect_same(together[i], alone[i]);
  }
  at::set_num_threads(before);
}

TEST(CpuVision, TakesOverChangedAndAdaptedWeights) {
  const at::NoGradGuard no_grad;
  const std::shared_ptr<Model> model = Model::load(test::tiny_untied(), {});
  CpuVision vision(model);
  const GridThw grid{1, 4, 6};
  const at::Tensor pixels = pixels_of(*model, grid);
  const VisionFeatures before = encode(vision, pixels, grid);
  std::vector<std::string> names;
  for (const NamedParameter& parameter : model->parameters()) names.push_back(parameter.name);
  const auto adapter = Adapter::create(*model, select_targets(model->description(), names, {}),
                                       {.lora = {.rank = 2, .alpha = 4}});
  for (const NamedParameter& parameter : adapter->parameters())
    at::Tensor(parameter.tensor).add_(0.1 * at::randn_like(parameter.tensor));
  for (const NamedParameter& parameter : model->parameters())
    at::Tensor(parameter.tensor).mul_(1.1);
  vision.refresh();
  const VisionFeatures after = encode(vision, pixels, grid);
  EXPECT_FALSE(at::equal(before.embeds_MH, after.embeds_MH));
  expect_near(after, model->encode_images({pixels, {grid}}), 2e-5);
  vision.release();
  expect_same(encode(vision, pixels, grid), after);
}

TEST(CpuVision, ComputesBfloat16WeightsInFloat32) {
  const at::NoGradGuard no_grad;
  const std::shared_ptr<Model> half = Model::load(test::tiny_untied(), {.dtype = at::kBFloat16});
  // stored as bfloat16: the same weights
  const std::shared_ptr<Model> single = Model::load(test::tiny_untied(), {});
  const GridThw grid{1, 4, 6};
  const at::Tensor pixels = pixels_of(*single, grid);
  CpuVision vision(half);
  // positions are rounded
  expect_near(encode(vision, pixels, grid), single->encode_images({pixels, {grid}}), 1e-2);
}

}  // namespace rematch
