#pragma once
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <memory>

#include "base/flow/segment.h"

namespace rematch::test {

// Replaces the model in tests of the M-step: an embedding and a head of these sizes, and rows for
// them.

inline constexpr int64_t kVocab = 1030, kHidden = 8;

inline at::Tensor random_tensor(at::IntArrayRef shape, uint64_t seed) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn(shape, generator, at::kFloat);
}

/// Lengths and numbers of supervised tokens differ; `id` decides all of it.
inline std::shared_ptr<const Segment> segment(int64_t id) {
  auto made = std::make_shared<Segment>();
  made->sample_id = id;
  const int length = 5 + static_cast<int>(id) * 3;
  for (int i = 0; i < length; ++i)
    made->token_ids.push_back(static_cast<int>((id * 131 + i * 29) % kVocab));
  made->labels.assign(made->token_ids.size(), kIgnoreLabel);
  for (int i = 1; i < length; i += 2)
    made->labels[static_cast<size_t>(i)] = made->token_ids[static_cast<size_t>(i)];
  for (int i = 2; i <= 2 + 2 * static_cast<int>(id); i += 2) {
    made->add_slot(kCoordSlots, {i, (i * 97) % kNumBins,
                                 i % 4 == 2 ? SlotSource::kPrefix : SlotSource::kAppend});
  }
  return made;
}

}  // namespace rematch::test
