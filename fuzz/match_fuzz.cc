// Masks and matching of arbitrary geometries, in and out of the canvas.
#include <cstdint>
#include <cstdlib>

#include "learn/estep/match/maskiou.h"
#include "learn/estep/match/matcher.h"

namespace {

class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return at_ >= size_; }
  int next() { return empty() ? 0 : data_[at_++]; }
  int coordinate() { return next() * 256 + next() - 32768; }

 private:
  const uint8_t* data_;
  size_t size_;
  size_t at_ = 0;
};

std::vector<rematch::Geometry> read_geometries(Bytes& bytes) {
  std::vector<rematch::Geometry> geometries(static_cast<size_t>(bytes.next() % 6));
  for (rematch::Geometry& geometry : geometries) {
    const int num_points = bytes.next() % 8;
    geometry.kind = num_points < 3 ? rematch::GeometryKind::kBbox2d : rematch::GeometryKind::kPoly;
    const int num_values = num_points < 3 ? 4 : 2 * num_points;
    // Half of them small, so that they meet.
    const bool small = bytes.next() % 2 == 0;
    for (int i = 0; i < num_values; ++i)
      geometry.bins.push_back(small ? bytes.next() * 4 : bytes.coordinate());
  }
  return geometries;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  rematch::MatchSettings options;
  options.candidate_top_k = 1 + bytes.next() % 4;
  options.maskiou_resolution = 1 + bytes.next();
  options.maskiou_gate = bytes.next() / 255.0;
  options.fp_cost = bytes.next() / 100.0;
  const auto predictions = read_geometries(bytes), ground_truth = read_geometries(bytes);
  const rematch::Matching matching = rematch::match(predictions, ground_truth, options);
  if (matching.pairs.size() + matching.false_positives.size() != predictions.size()) std::abort();
  if (matching.pairs.size() + matching.false_negatives.size() != ground_truth.size()) std::abort();
  const int64_t num_pixels =
      static_cast<int64_t>(options.maskiou_resolution) * options.maskiou_resolution;
  for (const rematch::Geometry& geometry : predictions) {
    const rematch::Mask mask = rematch::rasterize(geometry, options.maskiou_resolution);
    int64_t total = 0;
    for (const int64_t run : mask.runs) total += run;
    if (total != num_pixels || mask.area < 0 || mask.area > num_pixels) std::abort();
  }
  return 0;
}
