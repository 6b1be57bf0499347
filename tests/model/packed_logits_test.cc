// A segment's logits do not depend on what it is packed with.
#include <gtest/gtest.h>

#include <fmt/core.h>

#include <algorithm>

#include "model/packed_segments.h"
#include "model/row.h"
#include "model/tiny_checkpoint.h"

namespace rematch {
namespace {

using Segments = std::vector<std::shared_ptr<const Segment>>;

at::Tensor logits_of(const Model& model, const Segments& segments) {
  const at::NoGradGuard no_grad;
  return model.head_KV(forward_row(model, make_row({.segments = segments}, test::noise_pixels)));
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

// 1e-5 for logits of size 5. The tiny checkpoint's reach 17, where float32 itself has steps of
// 2e-6.
double tolerance(const at::Tensor& logits) {
  return 2e-6 * std::max(5.0, logits.abs().max().item<double>());
}

// Every segment of the row against the same segment alone.
void expect_same_as_alone(const Model& model, const Segments& segments) {
  const at::Tensor packed = logits_of(model, segments);
  int64_t begin = 0;
  for (const auto& segment : segments) {
    const at::Tensor alone = logits_of(model, {segment});
    ASSERT_GT(alone.abs().max().item<double>(), 0.1);
    EXPECT_LE(largest_difference(packed.narrow(0, begin, segment->encoded_len()), alone),
              tolerance(alone))
        << fmt::format("segment of {} tokens at {} among {}", segment->encoded_len(), begin,
                       segments.size());
    begin += segment->encoded_len();
  }
  EXPECT_EQ(begin, packed.size(0));
}

Segments random_row(uint64_t seed, int64_t num_segments, const test::SegmentMix& mix) {
  Segments segments;
  for (int64_t i = 0; i < num_segments; ++i) segments.push_back(test::random_segment(seed, i, mix));
  return segments;
}

}  // namespace

TEST(PackedLogits, OneToTwelveSegmentsWithImagesEqualTheSegmentsAlone) {
  const auto model = Model::load(test::tiny_tied(), {});
  for (int64_t num_segments = 1; num_segments <= 12; ++num_segments) {
    for (const uint64_t round : {0, 20, 40}) {
      expect_same_as_alone(
          *model, random_row(round + static_cast<uint64_t>(num_segments), num_segments, {}));
    }
  }
}

TEST(PackedLogits, TextOnlyRowsEqualTheirSegmentsAlone) {
  const auto model = Model::load(test::tiny_tied(), {});
  for (int64_t num_segments = 1; num_segments <= 12; ++num_segments) {
    expect_same_as_alone(*model, random_row(static_cast<uint64_t>(100 + num_segments), num_segments,
                                            {.max_images = 0}));
  }
}

TEST(PackedLogits, SegmentsWithAndWithoutImagesShareARow) {
  const auto model = Model::load(test::tiny_tied(), {});
  for (uint64_t seed = 200; seed < 204; ++seed) {
    Segments segments = random_row(seed, 6, {.max_images = 2});
    segments.insert(segments.begin() + 1,
                    test::random_segment(seed, 50, {.max_images = 0, .max_text = 1}));
    segments.push_back(test::random_segment(seed, 51, {.max_images = 0, .supervised = false}));
    expect_same_as_alone(*model, segments);
  }
}

TEST(PackedLogits, LongAndShortSegmentsInARowEqualTheSegmentsAlone) {
  // Beyond 64 tokens attention groups by similar length: some of these share a padded group, some
  // stand alone.
  const auto model = Model::load(test::tiny_tied(), {});
  for (uint64_t seed = 300; seed < 303; ++seed) {
    Segments segments = random_row(seed, 5, {.max_images = 1, .max_text = 300});
    for (int64_t i = 0; i < 3; ++i)
      segments.push_back(test::random_segment(seed, 60 + i, {.max_text = 6}));
    expect_same_as_alone(*model, segments);
  }
}

TEST(PackedLogits, TheOrderInTheRowDoesNotMatter) {
  const auto model = Model::load(test::tiny_tied(), {});
  const Segments segments = random_row(400, 5, {});
  const at::Tensor forward = logits_of(*model, segments);
  const at::Tensor backward = logits_of(*model, {segments.rbegin(), segments.rend()});
  int64_t begin = 0;
  for (const auto& segment : segments) {
    const int64_t len = segment->encoded_len(), begin_reversed = forward.size(0) - begin - len;
    EXPECT_LE(
        largest_difference(forward.narrow(0, begin, len), backward.narrow(0, begin_reversed, len)),
        tolerance(forward));
    begin += len;
  }
}

TEST(PackedLogits, WithoutTheBordersBetweenSegmentsTheyWouldDiffer) {
  // The comparison above can fail: one segment made of two gives other logits than the two side by
  // side.
  const auto model = Model::load(test::tiny_tied(), {});
  const Segments parts = random_row(500, 2, {.max_images = 0});
  auto joined = std::make_shared<Segment>(*parts[0]);
  joined->token_ids.insert(joined->token_ids.end(), parts[1]->token_ids.begin(),
                           parts[1]->token_ids.end());
  const int64_t first_len = parts[0]->encoded_len();
  const at::Tensor packed = logits_of(*model, parts), merged = logits_of(*model, {joined});
  EXPECT_LE(largest_difference(packed.slice(0, 0, first_len), merged.slice(0, 0, first_len)),
            tolerance(merged));
  EXPECT_GT(largest_difference(packed.slice(0, first_len), merged.slice(0, first_len)), 1e-2);
}

}  // namespace rematch
