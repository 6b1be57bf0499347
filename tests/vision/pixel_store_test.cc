#include "model/vision/pixel_store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

constexpr GridThw kGrid{1, 2, 2};

// Copies of one 32 x 32 image under many names.
class PixelStoreTest : public testing::Test {
 protected:
  PixelStoreTest() {
    const std::string bytes =
        read_file(test::source_path("tests/golden/vision_images/pixel_qwen3.png"));
    for (int i = 0; i < 24; ++i)
      images_.push_back(
          {.path = directory_.write(std::to_string(i) + ".png", bytes), .grid_thw = kGrid});
    expected_ = patchify(load_image(images_[0].path), {}, "x").pixel_values;
  }

  test::TempDir directory_;
  std::vector<ImageRef> images_;
  std::vector<float> expected_;
};

}  // namespace

TEST_F(PixelStoreTest, GivesTheSamePixelsWithAnyNumberOfWorkers) {
  for (const int num_workers : {0, 1, 4}) {
    PixelStore store({.loader = {.num_workers = num_workers}});
    store.prefetch(images_);
    for (const ImageRef& image : images_) {
      const auto patches = store.get(image);
      EXPECT_EQ(patches->grid_thw, kGrid);
      EXPECT_EQ(patches->pixel_values, expected_);
    }
  }
}

TEST_F(PixelStoreTest, KeepsChangedPicturesOfOneFileApart) {
  const auto darken = [](Image& image, const ImageChange& change) {
    for (uint8_t& value : image.rgb) value = static_cast<uint8_t>(value * change.color[0] / 1000);
  };
  for (const int num_workers : {0, 1, 3}) {
    PixelStore store({.loader = {.num_workers = num_workers}, .change = darken});
    ImageRef half = images_[0], dark = images_[0];
    half.change.color = {500, 1000, 1000};
    dark.change.color = {0, 1000, 1000};
    store.prefetch({images_[0], half, dark});
    const auto whole_pixels = store.get(images_[0]), half_pixels = store.get(half),
               dark_pixels = store.get(dark);
    EXPECT_EQ(whole_pixels->pixel_values, expected_);
    for (size_t i = 0; i < expected_.size(); ++i) {
      EXPECT_EQ(dark_pixels->pixel_values[i], -1);
      EXPECT_LE(half_pixels->pixel_values[i], expected_[i]);
    }
    EXPECT_NE(half_pixels->pixel_values, dark_pixels->pixel_values);
  }
}

TEST_F(PixelStoreTest, LoadsAnImageOnceForManyThreads) {
  PixelStore store({.loader = {.num_workers = 2}});
  store.prefetch(images_);
  std::vector<std::shared_ptr<const Patches>> seen(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < seen.size(); ++i) {
    threads.emplace_back([&, i] {
      for (const ImageRef& image : images_) store.get(image);
      seen[i] = store.get(images_[3]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& patches : seen) EXPECT_EQ(patches, seen[0]);
}

TEST_F(PixelStoreTest, KeepsWorkingWhenTheCacheHoldsNothing) {
  for (const int num_workers : {0, 2}) {
    PixelStore store({.loader = {.num_workers = num_workers}, .cache_bytes = 1});
    store.prefetch(images_);
    for (const ImageRef& image : images_) EXPECT_EQ(store.get(image)->pixel_values, expected_);
    store.prefetch({images_[0], images_[0]});
    for (size_t i = images_.size(); i-- > 0;)
      EXPECT_EQ(store.get(images_[i])->pixel_values, expected_);
  }
}

TEST_F(PixelStoreTest, DropsTheLeastRecentlyUsedImage) {
  const size_t size = expected_.size() * sizeof(float);
  // room for two images and half of another's patches; a picture is an eighth of its patches
  PixelStore store({.loader = {.num_workers = 0}, .cache_bytes = 2 * size + size / 2});
  const auto first = store.get(images_[0]);
  const auto second = store.get(images_[1]);
  store.get(images_[0]);
  store.get(images_[2]);
  EXPECT_EQ(store.get(images_[0]), first);
  EXPECT_NE(store.get(images_[1]), second);
}

// A window uses each image twice, for its rollout and for its row.
TEST_F(PixelStoreTest, ReadsEveryFileOfAWindowOnceThoughItsPatchesDoNotFit) {
  const size_t size = expected_.size() * sizeof(float);
  PixelStore store({.loader = {.num_workers = 0}, .cache_bytes = 5 * size});
  store.prefetch(images_);
  for (int use = 0; use < 2; ++use) {
    for (const ImageRef& image : images_) EXPECT_EQ(store.get(image)->pixel_values, expected_);
    // No file is left for a second reading.
    for (const ImageRef& image : images_) std::filesystem::remove(image.path);
  }
}

TEST_F(PixelStoreTest, ForgetsAnImageThatTwoWindowsHaveNotAskedFor) {
  for (const int num_workers : {0, 2}) {
    PixelStore store({.loader = {.num_workers = num_workers}});
    const auto window = [&](size_t first) {
      return std::vector<ImageRef>(images_.begin() + first, images_.begin() + first + 2);
    };
    store.prefetch(window(0));
    const auto stays = store.get(images_[0]);
    const std::weak_ptr<const Patches> goes = store.get(images_[1]);
    store.prefetch(window(2));
    EXPECT_FALSE(goes.expired()) << "the window at work may still need it";
    EXPECT_EQ(store.get(images_[0]), stays);
    store.prefetch(window(4));
    EXPECT_TRUE(goes.expired());
    EXPECT_EQ(store.get(images_[0]), stays) << "a later row asked for it meanwhile";
    EXPECT_EQ(store.get(images_[1])->pixel_values, expected_);
  }
}

TEST_F(PixelStoreTest, AnErrorOfTheBackgroundSurfacesInGetAndARepairedFileIsReadAgain) {
  for (const int num_workers : {0, 2}) {
    const std::string path = directory_.write("later.png", "not an image");
    const ImageRef image{.path = path, .grid_thw = kGrid};
    PixelStore store({.loader = {.num_workers = num_workers}});
    store.prefetch({image});
    const UserError error = test::catch_user_error([&] { store.get(image); });
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_EQ(error.problems()[0].where, path);
    std::filesystem::copy_file(images_[0].path, path,
                               std::filesystem::copy_options::overwrite_existing);
    EXPECT_EQ(store.get(image)->pixel_values, expected_);
  }
}

TEST_F(PixelStoreTest, RefusesAnImageOfAnotherSizeThanTheRecordSays) {
  PixelStore store({.loader = {.num_workers = 1}});
  ImageRef image = images_[0];
  image.grid_thw = {1, 4, 2};
  const UserError error = test::catch_user_error([&] { store.get(image); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_NE(error.problems()[0].what.find("32 x 32"), std::string::npos);
  EXPECT_NE(error.problems()[0].what.find("32 x 64"), std::string::npos);
}

TEST_F(PixelStoreTest, DecodesNoFurtherAheadThanThePrefetchFactor) {
  const test::TempDir dir;
  std::vector<ImageRef> images{images_[0], images_[0]};
  for (size_t i = 0; i < images.size(); ++i) {
    images[i].path = dir.file("image" + std::to_string(i) +
                              std::filesystem::path(images_[0].path).extension().string());
    std::filesystem::copy_file(images_[0].path, images[i].path);
  }
  PixelStore store({.loader = {.num_workers = 1, .prefetch_factor = 1}});
  store.prefetch(images);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // enough to decode both
  std::filesystem::remove(images[1].path);
  EXPECT_NO_THROW(store.get(images[0]));
  EXPECT_THROW(store.get(images[1]), UserError);
}

TEST_F(PixelStoreTest, DiesCleanlyWithWorkPending) {
  for (int i = 0; i < 20; ++i) {
    PixelStore store({.loader = {.num_workers = 3}});
    store.prefetch(images_);
  }
}

}  // namespace rematch
