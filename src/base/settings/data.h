#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/enum_names.h"
#include "base/settings/train_file.h"

namespace rematch {

/// Order of the objects in an answer (`custom.object_ordering`).
enum class ObjectOrdering {
  kSorted,  ///< stable by (min y, min x) over all vertices
  kRandom,  ///< reshuffled each epoch
  kOwn,     ///< as the starting checkpoint answers (learn/data/order_score.h)
};
constexpr auto names_of(ObjectOrdering) {
  using enum ObjectOrdering;
  return std::to_array<EnumName<ObjectOrdering>>(
      {{kSorted, "sorted"}, {kRandom, "random"}, {kOwn, "own"}});
}

/// Reaction to an image that becomes unusable during a run (`data.on_bad_sample`).
enum class OnBadSample {
  kStop,  ///< save the state and stop
  kSkip,  ///< leave the sample out, warn and count it
};
constexpr auto names_of(OnBadSample) {
  return std::to_array<EnumName<OnBadSample>>(
      {{OnBadSample::kStop, "stop"}, {OnBadSample::kSkip, "skip"}});
}

/// Treatment of samples longer than `global_max_length` (`template.truncation_strategy`); samples
/// are never truncated.
enum class LongSamples {
  kRaise,   ///< report an error that lists them
  kDelete,  ///< drop and count them
};
constexpr auto names_of(LongSamples) {
  using enum LongSamples;
  return std::to_array<EnumName<LongSamples>>(
      {{kRaise, "raise"}, {kDelete, "delete"}, {kRaise, "right"}, {kRaise, "left"}});
}

/// The answer format of training if the configuration sets none.
inline constexpr const char* kDefaultAnswerFormat = "coord_tokens";

/// The records to read (`custom.*_jsonl`, `.*_sample_limit`) and their use.
struct DataSettings {
  std::vector<TrainFile> train_files;  ///< `custom.train_jsonl`, at least one
  std::optional<std::string> val_jsonl;
  std::optional<int64_t> train_sample_limit;  ///< reads the first N records of each file
  std::optional<int64_t> val_sample_limit;
  LongSamples truncation_strategy = LongSamples::kRaise;
  /// `custom.answer_format`: a name in answer_formats(); none = kDefaultAnswerFormat in training,
  /// the checkpoint's format in other commands
  std::optional<std::string> answer_format;
  ObjectOrdering object_ordering = ObjectOrdering::kSorted;
  OnBadSample on_bad_sample = OnBadSample::kStop;
  /// ≥ 0, bins: standard deviation of noise on input coordinates, in training on the full truth
  double coord_input_noise = 0;

  bool operator==(const DataSettings&) const = default;
};

/// The prompts (`template.system`, `custom.user_prompt`).
struct PromptSettings {
  std::optional<std::string> system_prompt;  ///< none = built-in prompt
  /// the text, even if the key names a file; none = built-in prompt
  std::optional<std::string> user_prompt;

  bool operator==(const PromptSettings&) const = default;
};

/// Treatment of an image that the model's image processor would resize
/// (`template.image_resize`).
enum class ImageResize {
  kProcessor,  ///< resize it as the processor does
  kRefuse,     ///< report an error
};
constexpr auto names_of(ImageResize) {
  return std::to_array<EnumName<ImageResize>>(
      {{ImageResize::kProcessor, "processor"}, {ImageResize::kRefuse, "refuse"}});
}

/// The image processor of transformers that is reproduced bit for bit (`template.image_backend`).
/// The two differ by single grey levels in resized images, and by the last bit of normalised
/// values.
enum class ImageBackend {
  kTorchvision,  ///< transformers' choice if torchvision is installed; vLLM's choice
  kPil,          ///< transformers' choice without torchvision
};
constexpr auto names_of(ImageBackend) {
  return std::to_array<EnumName<ImageBackend>>(
      {{ImageBackend::kTorchvision, "torchvision"}, {ImageBackend::kPil, "pil"}});
}

/// Conversion of images to pixels (`template.*`); values that are not set come from the model
/// directory.
struct ImageSettings {
  ImageResize image_resize = ImageResize::kProcessor;
  ImageBackend image_backend = ImageBackend::kTorchvision;
  std::optional<int64_t> min_pixels;  ///< area in pixels; none = the directory's
  std::optional<int64_t> max_pixels;  ///< area in pixels; none = the directory's

  bool operator==(const ImageSettings&) const = default;
};

/// Decoding of images (`data.dataloader_*`); no effect on results.
struct LoaderSettings {
  int num_workers = 2;      ///< threads; 0 = the training thread decodes
  int prefetch_factor = 2;  ///< batches that each thread decodes ahead, ≥ 1

  bool operator==(const LoaderSettings&) const = default;
};

/// Batch sizes, which cut samples into windows (`training.*`).
struct BatchSettings {
  int per_device_train_batch_size = 1;  ///< samples in a micro-batch, ≥ 1
  int gradient_accumulation_steps = 1;  ///< micro-batches in a window on each rank, ≥ 1
  bool drop_last = false;               ///< drop an epoch's last micro-batch if it is not full

  bool operator==(const BatchSettings&) const = default;
};

}  // namespace rematch
