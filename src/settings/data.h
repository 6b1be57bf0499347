#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/enum_names.h"

namespace rematch {

/// How the objects of an answer are numbered (`custom.object_ordering`).
enum class ObjectOrdering {
  kSorted,  ///< stable by (min y, min x) over all vertices
  kRandom,  ///< reshuffled each epoch
};
inline constexpr EnumName<ObjectOrdering> kObjectOrderings[] = {{ObjectOrdering::kSorted, "sorted"}, {ObjectOrdering::kRandom, "random"}};
constexpr std::span<const EnumName<ObjectOrdering>> names_of(ObjectOrdering) { return kObjectOrderings; }

/// What training does when an image cannot be used in the middle of a run (`data.on_bad_sample`).
enum class OnBadSample {
  kStop,  ///< it stops with its state saved
  kSkip,  ///< it leaves the sample out, says so and counts it
};
inline constexpr EnumName<OnBadSample> kOnBadSamples[] = {{OnBadSample::kStop, "stop"}, {OnBadSample::kSkip, "skip"}};
constexpr std::span<const EnumName<OnBadSample>> names_of(OnBadSample) { return kOnBadSamples; }

/// Which records are read (`custom.*_jsonl`, `.*_sample_limit`).
struct DataSettings {
  std::string train_jsonl;
  std::optional<std::string> val_jsonl;
  std::optional<int64_t> train_sample_limit;  ///< first N records
  std::optional<int64_t> val_sample_limit;
  ObjectOrdering object_ordering = ObjectOrdering::kSorted;
  OnBadSample on_bad_sample = OnBadSample::kStop;
  double coord_input_noise = 0;  ///< ≥ 0, bins: standard deviation on coordinates shown where training teaches the full truth

  bool operator==(const DataSettings&) const = default;
};

/// The prompts (`template.system`, `custom.user_prompt`).
struct PromptSettings {
  std::optional<std::string> system_prompt;  ///< none = built in
  std::optional<std::string> user_prompt;    ///< the text itself, also when the key named a file; none = built in

  bool operator==(const PromptSettings&) const = default;
};

/// How images are decoded (`data.dataloader_*`); changes no result.
struct LoaderSettings {
  int num_workers = 2;      ///< threads; 0 = in the training thread
  int prefetch_factor = 2;  ///< batches that each thread may be ahead of their use, ≥ 1

  bool operator==(const LoaderSettings&) const = default;
};

/// How samples become windows (`training.*`).
struct BatchSettings {
  int per_device_train_batch_size = 1;  ///< samples of a micro-batch, ≥ 1
  int gradient_accumulation_steps = 1;  ///< micro-batches of a window on each rank, ≥ 1
  bool drop_last = false;               ///< drop an epoch's last micro-batch when it is not full

  bool operator==(const BatchSettings&) const = default;
};

}  // namespace rematch
