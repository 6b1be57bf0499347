#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/enum_names.h"
#include "settings/train_file.h"

namespace rematch {

/// Order of the objects of an answer (`custom.object_ordering`).
enum class ObjectOrdering {
  kSorted,  ///< stable by (min y, min x) over all vertices
  kRandom,  ///< reshuffled each epoch
};
inline constexpr EnumName<ObjectOrdering> kObjectOrderings[] = {
    {ObjectOrdering::kSorted, "sorted"}, {ObjectOrdering::kRandom, "random"}};
constexpr std::span<const EnumName<ObjectOrdering>> names_of(ObjectOrdering) {
  return kObjectOrderings;
}

/// Reaction to an image that becomes unusable in the middle of a run (`data.on_bad_sample`).
enum class OnBadSample {
  kStop,  ///< it stops with its state saved
  kSkip,  ///< it leaves the sample out, says so and counts it
};
inline constexpr EnumName<OnBadSample> kOnBadSamples[] = {{OnBadSample::kStop, "stop"},
                                                          {OnBadSample::kSkip, "skip"}};
constexpr std::span<const EnumName<OnBadSample>> names_of(OnBadSample) { return kOnBadSamples; }

/// Treatment of samples that are longer than `global_max_length`
/// (`template.truncation_strategy`); nothing is ever truncated.
enum class LongSamples {
  kRaise,   ///< an error that lists them
  kDelete,  ///< they are dropped and counted
};
inline constexpr EnumName<LongSamples> kLongSamples[] = {{LongSamples::kRaise, "raise"},
                                                         {LongSamples::kDelete, "delete"},
                                                         {LongSamples::kRaise, "right"},
                                                         {LongSamples::kRaise, "left"}};
constexpr std::span<const EnumName<LongSamples>> names_of(LongSamples) { return kLongSamples; }

/// The answer format of training when a configuration names none.
inline constexpr const char* kDefaultAnswerFormat = "coord_tokens";

/// Which records are read (`custom.*_jsonl`, `.*_sample_limit`).
struct DataSettings {
  std::vector<TrainFile> train_files;  ///< `custom.train_jsonl`, at least one
  std::optional<std::string> val_jsonl;
  std::optional<int64_t> train_sample_limit;  ///< first N records of each file
  std::optional<int64_t> val_sample_limit;
  LongSamples truncation_strategy = LongSamples::kRaise;
  /// `custom.answer_format`: a name in answer_formats(); none = kDefaultAnswerFormat, where nothing
  /// is trained the checkpoint's own
  std::optional<std::string> answer_format;
  ObjectOrdering object_ordering = ObjectOrdering::kSorted;
  OnBadSample on_bad_sample = OnBadSample::kStop;
  /// ≥ 0, bins: standard deviation on coordinates shown where training teaches the full truth
  double coord_input_noise = 0;

  bool operator==(const DataSettings&) const = default;
};

/// The prompts (`template.system`, `custom.user_prompt`).
struct PromptSettings {
  std::optional<std::string> system_prompt;  ///< none = built in
  /// the text itself, also when the key named a file; none = built in
  std::optional<std::string> user_prompt;

  bool operator==(const PromptSettings&) const = default;
};

/// Treatment of an image that the model's image processor would resize
/// (`template.image_resize`).
enum class ImageResize {
  kProcessor,  ///< it is resized as the processor does
  kRefuse,     ///< it is an error
};
inline constexpr EnumName<ImageResize> kImageResizes[] = {{ImageResize::kProcessor, "processor"},
                                                          {ImageResize::kRefuse, "refuse"}};
constexpr std::span<const EnumName<ImageResize>> names_of(ImageResize) { return kImageResizes; }

/// Which of transformers' two image processors is followed to the bit (`template.image_backend`):
/// they differ by a grey level here and there in a resized image, and by the last bit of a
/// normalised value.
enum class ImageBackend {
  kTorchvision,  ///< transformers' choice where torchvision is installed; vLLM's too
  kPil,          ///< its choice elsewhere
};
inline constexpr EnumName<ImageBackend> kImageBackends[] = {
    {ImageBackend::kTorchvision, "torchvision"}, {ImageBackend::kPil, "pil"}};
constexpr std::span<const EnumName<ImageBackend>> names_of(ImageBackend) { return kImageBackends; }

/// Conversion of images to pixels (`template.*`); values not set here come from the model
/// directory.
struct ImageSettings {
  ImageResize image_resize = ImageResize::kProcessor;
  ImageBackend image_backend = ImageBackend::kTorchvision;
  std::optional<int64_t> min_pixels;  ///< area; none = the directory's
  std::optional<int64_t> max_pixels;  ///< area; none = the directory's

  bool operator==(const ImageSettings&) const = default;
};

/// Decoding of images (`data.dataloader_*`); changes no result.
struct LoaderSettings {
  int num_workers = 2;      ///< threads; 0 = in the training thread
  int prefetch_factor = 2;  ///< batches that each thread may be ahead of their use, ≥ 1

  bool operator==(const LoaderSettings&) const = default;
};

/// Batch sizes, which cut samples into windows (`training.*`).
struct BatchSettings {
  int per_device_train_batch_size = 1;  ///< samples of a micro-batch, ≥ 1
  int gradient_accumulation_steps = 1;  ///< micro-batches of a window on each rank, ≥ 1
  bool drop_last = false;               ///< drop an epoch's last micro-batch when it is not full

  bool operator==(const BatchSettings&) const = default;
};

}  // namespace rematch
