// Pixels of a tower on a device: grey levels go up, and become there the values of the host.
#include <gtest/gtest.h>

#include "model/model.h"
#include "model/pixel_levels.h"
#include "model/row.h"
#include "model/tiny_checkpoint.h"
#include "support/pretend_device.h"

namespace rematch {
namespace {

Image picture(int width_px, int height_px) {
  Image image = black_image({.width_px = width_px, .height_px = height_px});
  uint32_t state = 7;
  for (uint8_t& level : image.rgb)
    level = static_cast<uint8_t>((state = state * 1664525u + 1013904223u) >> 24);
  return image;
}

int64_t bytes_up(const std::function<void()>& work) {
  const test::Traffic before = test::traffic();
  work();
  return (test::traffic() - before).bytes_up;
}

}  // namespace

TEST(DevicePixels, LevelsBecomeTheValuesOfTheHostToTheBit) {
  PatchOptions clip;
  clip.image_mean = {0.48145466, 0.4578275, 0.40821073};
  clip.image_std = {0.26862954, 0.26130258, 0.27577711};
  PatchOptions pillow = clip;
  pillow.backend = ImageBackend::kPil;
  for (const PatchOptions& options : {PatchOptions{}, clip, pillow}) {
    const Image image = picture(96, 64);
    const Patches values = cut_into_patches(image, options),
                  levels = cut_into_levels(image, options);
    const VisionInput input = view_image(levels);
    const at::Tensor there = input.pixel_values_NC.to(test::pretend_device()),
                     table = input.level_values_C256.to(test::pretend_device()),
                     found = values_of_levels(there, table, 2);
    EXPECT_TRUE(at::equal(found.cpu(), view_image(values).pixel_values_NC));
    const test::Traffic before = test::traffic();
    values_of_levels(there, table, 2);
    EXPECT_LE((test::traffic() - before).launches, 6);
    EXPECT_EQ(levels.row_width, values.row_width);
  }
}

TEST(DevicePixels, AnEighthOfTheBytesGoUpAndTheFeaturesAreTheSame) {
  const auto model = Model::load(test::tiny_tied(), {.device = test::pretend_device()});
  const Image image = picture(512, 512);
  const auto join = [](Patches patches) {
    return join_images({std::make_shared<const Patches>(std::move(patches))});
  };
  const VisionInput values = join(cut_into_patches(image, {})),
                    levels = join(cut_into_levels(image, {}));
  VisionFeatures wanted, found;
  const at::NoGradGuard no_grad;
  const int64_t bytes_of_values = bytes_up([&] { wanted = model->encode_images(values); }),
                bytes_of_levels = bytes_up([&] { found = model->encode_images(levels); });
  EXPECT_TRUE(at::equal(found.embeds_MH.cpu(), wanted.embeds_MH.cpu()));
  const int64_t others = bytes_of_values - int64_t{512} * 512 * 3 * 2 * 4;  // positions, lengths
  EXPECT_GE(others, 0);
  EXPECT_LE(bytes_of_levels - others, int64_t{512} * 512 * 3 + 3 * 256 * 4);
}

TEST(DevicePixels, ImagesOfARowShareOneTableAndKeepTheirOrder) {
  const auto one = std::make_shared<const Patches>(cut_into_levels(picture(64, 64), {})),
             other = std::make_shared<const Patches>(cut_into_levels(picture(96, 32), {}));
  const VisionInput joined = join_images({one, other});
  EXPECT_EQ(joined.level_values_C256.sizes(), (std::vector<int64_t>{3, 256}));
  EXPECT_EQ(joined.grid_thw, (std::vector<GridThw>{one->grid_thw, other->grid_thw}));
  EXPECT_TRUE(at::equal(joined.pixel_values_NC.narrow(0, one->num_rows(), other->num_rows()),
                        view_image(*other).pixel_values_NC));
}

}  // namespace rematch
