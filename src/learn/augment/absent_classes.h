#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "base/flow/sample.h"
#include "base/settings/augment.h"

/// Names of classes that a picture does not show, drawn into prompts that list classes
/// (`custom.absent_classes`).
namespace rematch {

/// Adds the names to the list in a sample's prompt, and puts the list into a new order, so that
/// nothing but the picture tells the names apart. Does nothing unless Sample::classes is set
/// (Dataset::offer_classes) and the prompt has a list.
/// @param key  of the random stream
void draw_absent_classes(Sample& sample, const AugmentSettings& settings, uint64_t key);

/// The numbers of samples whose prompt lists classes, and of those of them to whose list a name can
/// be added.
/// @param samples  with Sample::classes
std::pair<int64_t, int64_t> count_listing(const std::vector<Sample>& samples);

/// The sample with the longest prompt that it can get: with the longest of the names, in bytes.
Sample with_longest_prompt(Sample sample, const AugmentSettings& settings);

}  // namespace rematch
