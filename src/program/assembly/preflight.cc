#include "program/assembly/preflight.h"

#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/observe/wandb_follower.h"
#include "base/terminal_text.h"
#include "engine/ranks/device.h"
#include "engine/ranks/nccl_group.h"
#include "learn/augment/absent_classes.h"
#include "learn/data/class_names.h"
#include "learn/data/ordering.h"
#include "learn/resume/fingerprint.h"
#include "learn/resume/resume.h"
#include "learn/resume/run_lock.h"
#include "learn/resume/run_state.h"
#include "model/checkpoint/model_dir.h"
#include "model/model.h"
#include "program/assembly/job.h"
#include "program/assembly/long_samples.h"
#include "program/assembly/run_directory.h"
#include "program/assembly/run_identity.h"
#include "program/assembly/run_length.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDecodedRecords = 32;  // of each set: a second or two of photographs

/// The checks of a preflight, in order.
class Checks {
 public:
  Checks(const ConfigResult& config, std::string device, int num_ranks, Report& report)
      : config_(config),
        settings_(config.settings),
        device_(std::move(device)),
        num_ranks_(num_ranks),
        report_(report) {}

  RunFacts run() {
    if (num_ranks_ > 1) report_.attempt([&] { check_exchange(); });
    CheckedJob checked = check_job(settings_, Use::kTrain, device_, num_ranks_, report_);
    data_ = std::move(checked.data);
    files_ = std::move(checked.files);
    checked_device_ = checked.device;
    note_data("train_jsonl", data_.train, data_.num_long_dropped);
    note_data("val_jsonl", data_.val, data_.num_long_dropped_val);
    note_length();
    check_model();
    if (settings_.output.reports_to("wandb"))
      report_.attempt([&] { report_.warn(missing_wandb().value_or("")); });
    check_resume();
    check_run_directory();
    return std::move(facts_);
  }

 private:
  void check_exchange() {
    const at::Device device = choose_device(device_);
    if (settings_.ddp_backend == DdpBackend::kNccl ||
        (settings_.ddp_backend == DdpBackend::kAuto && device.is_cuda()))
      require_nccl(device);
  }

  void note_data(const char* key, const std::optional<Dataset>& data, int64_t num_long) {
    if (!data) return;
    std::string text = fmt::format("{}: {} samples", data->path(), data->size() + num_long);
    if (num_long > 0) text += fmt::format(", {} dropped as too long", num_long);
    if (data->epoch_size() != data->size())
      text += fmt::format(", {} in an epoch by their weights", data->epoch_size());
    text += decode_some(*data);
    facts_.emplace_back(key, text);
  }

  /// Decodes a sample of the images: a truncated file passes every check of headers.
  /// @return how many were decoded, for the line of the set
  std::string decode_some(const Dataset& data) {
    const bool skips = settings_.data.on_bad_sample == OnBadSample::kSkip;
    std::string text;
    report_.attempt([&] {
      try {
        const int64_t num_decoded = data.decode_images(kDecodedRecords);
        text = fmt::format(", {} decoded", counted(num_decoded, "image"));
      } catch (const UserError& error) {
        if (!skips || error.kind() != ErrorKind::kData) throw;
        const Problem& first = error.problems().front();
        report_.warn(fmt::format("{}: {} ({})", first.where, first.error, first.what));
      }
    });
    return text;
  }

  /// The length of the run and the spellings of the classes.
  void note_length() {
    if (!data_.train) return;
    report_.attempt([&] {
      const RunLength length = run_length(settings_, data_.train->epoch_size(), num_ranks_);
      facts_.emplace_back("steps", length_text(length));
      report_.warn(short_run_warning(length, settings_));
      report_.warn(warmup_warning(settings_.schedule, length.steps));
    });
    if (const AugmentSettings& draws = settings_.augment; draws.absent_share > 0) {
      const auto [num_listing, num_open] = count_listing(data_.train->samples());
      facts_.emplace_back("absent classes",
                          fmt::format("1 to {} names that the picture lacks, in each epoch for "
                                      "{:g} % of the {} prompts that list classes",
                                      draws.absent_most, 100 * draws.absent_share, num_listing));
    }
    for (const auto* data : {&data_.train, &data_.val}) {
      if (*data && files_)
        report_.attempt([&] {
          report_.warn(answer_budget_warning(**data, settings_, *files_, checked_device_));
        });
    }
    report_.warn_all(class_name_warnings(*data_.train, data_.val ? &*data_.val : nullptr));
  }

  void check_model() {
    const std::string& directory = settings_.model.directory;
    report_.attempt([&] {
      require_model_dir(directory);
      const std::shared_ptr<Model> model =
          Model::load(directory, {.device = at::kMeta, .four_bit = settings_.model.quantisation()});
      int64_t num_values = 0;
      for (const NamedParameter& parameter : model->parameters())
        num_values += parameter.tensor.numel();
      facts_.insert(facts_.begin(),
                    {"model", fmt::format("{}: {} parameters", directory, num_values)});
      for (const std::string& name : model->unused_tensors())
        report_.warn(fmt::format("the checkpoint's tensor {} is not used by this model", name));
    });
  }

  /// Compares the resumed checkpoint with the configuration, as far as possible without the model.
  void check_resume() {
    if (!settings_.checkpoints.resume_from_checkpoint) return;
    report_.attempt([&] {
      const ResumeChoice choice =
          resolve_resume(*settings_.checkpoints.resume_from_checkpoint, settings_.output.run_dir);
      report_.warn_all(choice.warnings);
      facts_.emplace_back("resumes from", choice.checkpoint.value_or("nothing: a new run"));
      if (!choice.checkpoint || !data_.train) return;
      stored_order(settings_.data, *choice.checkpoint);
      compare_known_values(read_saved_fingerprint(*choice.checkpoint),
                           make_fingerprint(fingerprint_input(settings_, data_, num_ranks_)),
                           *choice.checkpoint);
    });
  }

  void check_run_directory() {
    const OutputSettings& output = settings_.output;
    report_.attempt([&] { RunLock::require_free(output.run_dir); });
    report_.attempt([&] { refuse_to_replace_inputs(config_); });
    check_writable(output.run_dir, "training.output_dir");
    if (output.reports_to("tensorboard"))
      check_writable(output.logging_dir, "training.logging_dir");
    const MonitorSettings& monitor = settings_.monitor;
    if (monitor.enabled && settings_.is_stage_2())
      check_writable(monitor.out_dir.value_or(output.run_dir), "monitor_dump.out_dir");
    facts_.emplace_back("run directory", output.run_dir);
  }

  void check_writable(const std::string& directory, const std::string& key) {
    report_.attempt([&] {
      fs::path nearest = fs::absolute(directory).lexically_normal();
      std::error_code unseen;  // a directory that cannot be searched
      // A link that leads nowhere is there too.
      while (!fs::exists(fs::symlink_status(nearest, unseen)) && nearest.has_relative_path())
        nearest = nearest.parent_path();
      const bool is_directory = is_dir(nearest);
      // Permissions do not tell everything: /proc, a mount for reading only.
      const fs::path attempt = nearest / fmt::format(".tmp-check-{}", ::getpid());
      std::error_code refused;
      if (is_directory && fs::create_directory(attempt, refused)) {
        fs::remove(attempt, refused);
        return;
      }
      throw environment_error(
          {.error = "a directory of the run cannot be written",
           .where = directory,
           .what = fmt::format("{} is {}", nearest.string(),
                               is_directory ? "not writable" : "not a directory"),
           .fix = "set " + key + " to a place you can write to"});
    });
  }

  const ConfigResult& config_;
  const Settings& settings_;
  std::string device_;
  int num_ranks_;
  Report& report_;
  RunFacts facts_;
  std::optional<ModelFiles> files_;
  Data data_;
  at::Device checked_device_ = at::kCPU;
};

}  // namespace

RunFacts preflight(const ConfigResult& config, const std::string& device, int num_ranks,
                   Report& report) {
  return Checks(config, device, num_ranks, report).run();
}

}  // namespace rematch
