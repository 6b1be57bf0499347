#include <fmt/core.h>

#include <utility>
#include <vector>

#include "learn/augment/absent_classes.h"
#include "learn/augment/side_words.h"
#include "learn/data/doubts.h"
#include "learn/data/order_score.h"
#include "learn/data/overlap.h"
#include "learn/data/records_path.h"
#include "learn/estep/answer/answer_format.h"
#include "learn/estep/match/labels.h"
#include "program/assembly/long_samples.h"
#include "program/assembly/open.h"

namespace rematch {
namespace {

/// Reads the records of one command.
class Reader {
 public:
  Reader(const Settings& settings, const ModelFiles* files, Report& report)
      : settings_(settings), files_(files), report_(report) {}

  Dataset read_val() const {
    const DataSettings& data = settings_.data;
    if (!data.val_jsonl) {
      throw config_error({.error = "no validation data to evaluate on",
                          .where = "custom.val_jsonl",
                          .what = "custom.val_jsonl is not set",
                          .fix = "set custom.val_jsonl"});
    }
    return read(*data.val_jsonl, data.val_sample_limit, OnBadSample::kStop);
  }

  /// Reads all files of custom.train_jsonl; reports the problems of all files together.
  Dataset read_train(OnBadSample on_bad) const {
    const DataSettings& data = settings_.data;
    check_train_files(data.train_files);
    Report problems;
    std::vector<Dataset> files;
    std::vector<double> weights;
    for (const TrainFile& file : data.train_files) {
      problems.attempt([&] { files.push_back(read(file.path, data.train_sample_limit, on_bad)); });
      weights.push_back(file.weight);
    }
    problems.throw_problems();
    Dataset mixed = Dataset::mix(std::move(files), weights);
    if (weights.size() == 1) return mixed;  // Dataset::load() looked at it
    if (const SplitImages split = find_split_images(mixed.samples()); split.num_images > 0)
      report_.warn(fmt::format("{}: {}", mixed.path(), split.text()));
    return mixed;
  }

  /// Drops or refuses samples that are too long.
  /// @return number of dropped samples
  int64_t settle_long(Dataset& data, const AugmentSettings& augment) const {
    return files_ == nullptr ? 0 : settle_long_samples(data, settings_, *files_, augment, report_);
  }

 private:
  /// @param on_bad  kSkip: unusable images are only a warning here, and skipped when they are
  /// needed
  Dataset read(const std::string& path, std::optional<int64_t> limit, OnBadSample on_bad) const {
    DatasetOptions options{.limit = limit,
                           .require_single_image = settings_.is_stage_2(),
                           .check_image_files = files_ == nullptr || on_bad == OnBadSample::kStop};
    if (files_ != nullptr) {
      for (const AddedToken& token : files_->tokenizer->added_tokens())
        options.forbidden_texts.push_back(token.content);
      if (!answer_formats().find(files_->format_name).has_names) options.name_all = kNameless;
    }
    require_records_file(path);
    Dataset dataset = Dataset::load(path, options);
    if (files_ == nullptr) return dataset;
    report_.warn_all(dataset.warnings());
    check_geometries(dataset);
    check_images(dataset, on_bad);
    return on_bad == OnBadSample::kSkip ? without_impossible_sizes(dataset) : dataset;
  }

  /// Checks that the answer format can write every object.
  void check_geometries(const Dataset& dataset) const {
    for (const Sample& sample : dataset.samples()) {
      for (const SceneObject& object : sample.objects)
        files_->format->check_geometry(object.geometry.kind, sample.where);
    }
  }

  void check_images(const Dataset& dataset, OnBadSample on_bad) const {
    try {
      report_.warn_all(image_warnings(dataset.validate_images(files_->patches), dataset.path()));
    } catch (const UserError& error) {
      if (on_bad == OnBadSample::kStop) throw;
      const Problem& first = error.problems().front();
      report_.warn(
          fmt::format("{}: some images cannot be used and are skipped, the first {}: {} ({})",
                      dataset.path(), first.where, first.error, first.what));
    }
  }

  /// Drops samples with image sizes that the processor rejects: they have no prompt and so cannot
  /// be skipped later.
  Dataset without_impossible_sizes(const Dataset& dataset) const {
    std::vector<int64_t> impossible;
    for (int64_t i = 0; i < dataset.size(); ++i) {
      const Sample& sample = dataset.samples()[i];
      try {
        processed_size({.width_px = sample.width_px, .height_px = sample.height_px},
                       files_->patches, sample.where);
      } catch (const UserError&) {
        impossible.push_back(i);
      }
    }
    if (impossible.empty() || std::ssize(impossible) == dataset.size()) return dataset;
    report_.warn(
        fmt::format("{} of {} samples of {} are left out: the image processor rejects the size of "
                    "their images",
                    impossible.size(), dataset.size(), dataset.path()));
    return dataset.copy_without(impossible);
  }

  const Settings& settings_;
  const ModelFiles* files_;
  Report& report_;
};

/// Refuses mirrored and turned pictures whose texts name a side. The built-in prompts name none.
void check_augment(const Settings& settings, const Dataset& data) {
  check_side_words(data.samples(),
                   {{"template.system", settings.prompt.system_prompt.value_or("")},
                    {"custom.user_prompt", settings.prompt.user_prompt.value_or("")}},
                   settings.augment);
}

/// Prepares the training records for custom.absent_classes.
/// @throws UserError (config) when no name can be added to any prompt
void offer_absent_classes(const Settings& settings, Dataset& data, Report& report) {
  if (settings.augment.absent_share == 0) return;
  const LabelMatch labels = LabelMatch::from(settings.match.label_match);
  data.offer_classes([&labels](const std::string& name) { return labels.class_name(name); });
  const auto [num_listing, num_open] = count_listing(data.samples());
  if (num_open == 0) {
    throw config_error(
        {.error = "there is no prompt to which absent classes can be added",
         .where = "custom.absent_classes.share",
         .what = fmt::format("{} of {} training records have a `prompt` that lists classes (with "
                             "names of objects of these records), and no list lacks one",
                             num_listing, data.size()),
         .fix = "import the data with `--prompt-classes`, or remove custom.absent_classes"});
  }
  if (num_listing == data.size()) return;
  report.warn(
      fmt::format("custom.absent_classes changes nothing in {} of {} training records: "
                  "their `prompt` has no list of classes",
                  data.size() - num_listing, data.size()));
}

/// Warns of a file of synonyms that is about other data.
void check_synonyms(const std::string& rule, const Dataset& data, Report& report) {
  const LabelMatch labels = LabelMatch::from(rule);
  bool has_objects = false;
  for (const Sample& sample : data.samples()) {
    for (const SceneObject& object : sample.objects) {
      if (labels.knows(object.desc)) return;
      has_objects = true;
    }
  }
  if (has_objects)
    report.warn(fmt::format("no object of {} has a name of {} (label_match)", data.path(), rule));
}

bool needs_val(Use use, const Settings& settings) {
  return use == Use::kEvaluate || use == Use::kAnswer ||
         (use == Use::kTrain && settings.evaluates());
}

}  // namespace

bool rolls_out(Use use, const Settings& settings) {
  if (use == Use::kTrain)
    return settings.is_stage_2() || (settings.evaluates() && settings.rollouts);
  return use != Use::kEvaluate || settings.is_stage_2() || settings.rollouts;
}

bool needs_backend(Use use, const Settings& settings) {
  return rolls_out(use, settings) ||
         (use == Use::kTrain && settings.data.object_ordering == ObjectOrdering::kOwn &&
          !read_order(settings.model.directory));
}

bool measures_truth(Use use, const Settings& settings) {
  return !settings.is_stage_2() &&
         (use == Use::kEvaluate || (use == Use::kTrain && settings.evaluates()));
}

Data open_data(const Settings& settings, const ModelFiles* files, Use use, Report& report) {
  const Reader reader(settings, files, report);
  Data data;
  // Find a wrong file of synonyms before reading the data.
  report.attempt([&] { LabelMatch::from(settings.match.label_match); });
  if (use == Use::kTrain) {
    report.attempt([&] { data.train = reader.read_train(settings.data.on_bad_sample); });
    if (data.train) report.attempt([&] { check_augment(settings, *data.train); });
    if (data.train) report.attempt([&] { offer_absent_classes(settings, *data.train, report); });
  }
  if (use == Use::kAnswerTrain)
    report.attempt([&] { data.val = reader.read_train(OnBadSample::kStop); });
  if (needs_val(use, settings)) report.attempt([&] { data.val = reader.read_val(); });
  if (data.train && data.val) report.warn_all(overlap_warnings(*data.train, *data.val));
  if (const auto& scored = data.val ? data.val : data.train)
    report.attempt([&] { check_synonyms(settings.match.label_match, *scored, report); });
  if (data.train)
    report.attempt(
        [&] { data.num_long_dropped = reader.settle_long(*data.train, settings.augment); });
  if (data.val && measures_truth(use, settings))
    report.attempt([&] { data.num_long_dropped_val = reader.settle_long(*data.val, {}); });
  return data;
}

}  // namespace rematch
