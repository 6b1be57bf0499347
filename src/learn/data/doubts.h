#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/flow/sample.h"

namespace rematch {

/// True for a box without width or height, or an outline without area.
bool has_no_area(const Geometry& geometry);

/// True if two lists hold the same objects, in any order.
bool are_same_objects(Objects a, Objects b);

/// Images whose objects are spread over several records of the same prompt: each record teaches
/// that the objects of the others are not there.
struct SplitImages {
  int64_t num_images = 0, num_records = 0;

  /// "67 images are in 143 records with different objects: …".
  std::string text() const;
};
SplitImages find_split_images(std::span<const Sample> samples);

/// Warnings about legal but probably unintended content (BEHAVIOUR 2.8): shapes without area,
/// coordinates that look like pixels, images in several records.
/// @param path  of their JSONL
Strings content_warnings(const std::string& path, std::span<const Sample> samples);

}  // namespace rematch
