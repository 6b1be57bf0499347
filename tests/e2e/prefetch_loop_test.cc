// Images that are loaded while an update runs, in the loop of the program with recorded answers.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <string>

#include "e2e/recorded_loop.h"

namespace rematch {
namespace {

const WindowOptions kPairs{
    .batches = {.per_device_train_batch_size = 1, .gradient_accumulation_steps = 2}};

// Tells when a file is opened for the first time from now on.
class OpenedFiles {
 public:
  OpenedFiles() : fd_(inotify_init1(IN_NONBLOCK)) {}
  ~OpenedFiles() { close(fd_); }
  OpenedFiles(const OpenedFiles&) = delete;
  OpenedFiles& operator=(const OpenedFiles&) = delete;

  void watch(const std::string& path) const {
    ASSERT_GE(inotify_add_watch(fd_, path.c_str(), IN_OPEN | IN_ONESHOT), 0) << path;
  }
  /// @return false if no file is opened in that time
  bool wait_for_one(int timeout_ms) const {
    pollfd polled{.fd = fd_, .events = POLLIN, .revents = 0};
    return poll(&polled, 1, timeout_ms) == 1;
  }

 private:
  int fd_;
};

// Watches the images of a window.
void watch_window(const OpenedFiles& files, const test::RecordedStage2& stage2, int idx) {
  WindowOptions options = kPairs;
  options.num_samples = stage2.num_samples();
  WindowStream stream(options);
  WindowPlan plan = stream.next();
  for (int i = 0; i < idx; ++i) plan = stream.next();
  for (const int64_t sample : plan.samples()) {
    for (const ImageRef& image : image_refs(stage2.dataset().samples()[static_cast<size_t>(sample)],
                                            stage2.scorer().options().patches))
      files.watch(image.path);
  }
}

}  // namespace

TEST(Prefetch, TheImagesOfTheNextWindowAreReadDuringTheUpdate) {
  test::RecordedStage2 stage2(/*num_workers=*/1);
  const OpenedFiles second, third;
  watch_window(second, stage2, 1);
  watch_window(third, stage2, 2);
  int num_rows = 0;
  const auto on_row = [&](const PackedRow&) {
    if (++num_rows > 1) return;
    EXPECT_TRUE(second.wait_for_one(20000)) << "in the first update";
  };
  const test::RecordedLoop loop =
      test::run_loop(stage2, {.num_steps = 2, .windows = kPairs, .on_row = on_row});
  EXPECT_EQ(num_rows, 4);
  EXPECT_FALSE(third.wait_for_one(0)) << "the run ends after two windows";
  // The same windows as without threads.
  test::RecordedStage2 plain;
  const test::RecordedLoop wanted = test::run_loop(plain, {.num_steps = 2, .windows = kPairs});
  for (size_t step = 0; step < 2; ++step) {
    EXPECT_EQ(test::sample_ids(loop.steps[step].rows), test::sample_ids(wanted.steps[step].rows));
    EXPECT_EQ(loop.steps[step].metrics.at("loss"), wanted.steps[step].metrics.at("loss"));
  }
}

}  // namespace rematch
