#include "assembly/preflight.h"

#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>

#include "assembly/make_trainer.h"
#include "assembly/run_directory.h"
#include "assembly/run_identity.h"
#include "assembly/run_length.h"
#include "assembly/session_parts.h"
#include "assembly/vllm_setup.h"
#include "base/text.h"
#include "checkpoint/model_dir.h"
#include "data/class_names.h"
#include "model/model.h"
#include "observe/wandb_follower.h"
#include "ranks/device.h"
#include "ranks/nccl_group.h"
#include "resume/fingerprint.h"
#include "resume/resume.h"
#include "resume/run_lock.h"
#include "resume/run_state.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

/// The checks of a preflight, in order.
class Checks {
 public:
  Checks(const ConfigResult& config, std::string device, int num_ranks)
      : config_(config),
        settings_(config.settings),
        device_(std::move(device)),
        num_ranks_(num_ranks) {}

  Preflight run() {
    if (num_ranks_ > 1 && settings_.ddp_backend == DdpBackend::kNccl)
      problems_.attempt([&] { require_nccl(choose_device(device_)); });
    build_parts();
    note_length();
    check_model();
    check_wandb();
    check_resume();
    check_run_directory();

    result_.problems = problems_.take();
    for (const std::string& line : split(warnings_.str(), '\n')) {
      constexpr std::string_view kMark = "warning: ";
      if (line.rfind(kMark, 0) == 0) result_.warnings.push_back(line.substr(kMark.size()));
    }
    return std::move(result_);
  }

 private:
  void build_parts() {
    const auto vllm_options = [this](const at::Device& device) {
      VllmOptions options = make_vllm_options(settings_, device, alone());
      options.world_size = options.ranks_on_host = num_ranks_;
      return options;
    };
    parts_ = build_session_parts({.settings = settings_,
                                  .device = device_,
                                  .needs = training_needs(settings_, nullptr, ""),
                                  .vllm_options = vllm_options,
                                  .terminal = terminal_},
                                 problems_);
    note_data("train_jsonl", parts_.train_data, parts_.num_long_dropped);
    note_data("val_jsonl", parts_.val_data, parts_.num_long_dropped_val);
  }

  void note_data(const char* key, const std::optional<Dataset>& data, int64_t num_long) {
    if (!data) return;
    const std::string dropped =
        num_long > 0 ? fmt::format(", {} dropped as too long", num_long) : "";
    std::string text =
        fmt::format("{}: {} samples{}", data->path(), data->size() + num_long, dropped);
    if (data->epoch_size() != data->size())
      text += fmt::format(", {} in an epoch by their weights", data->epoch_size());
    result_.facts.emplace_back(key, text);
  }

  /// The length of the run and the spellings of the classes.
  void note_length() {
    if (!parts_.train_data) return;
    problems_.attempt([&] {
      const RunLength length = run_length(settings_, parts_.train_data->epoch_size(), num_ranks_);
      result_.facts.emplace_back("steps", length_text(length));
      for (const std::string& warning : {short_run_warning(length, settings_),
                                         warmup_warning(settings_.schedule, length.steps)}) {
        if (!warning.empty()) result_.warnings.push_back(warning);
      }
    });
    const std::string spellings =
        spelling_warning(*parts_.train_data, parts_.val_data ? &*parts_.val_data : nullptr);
    if (!spellings.empty()) result_.warnings.push_back(spellings);
  }

  void check_model() {
    const std::string& directory = settings_.model.directory;
    problems_.attempt([&] {
      require_model_dir(directory);
      const std::shared_ptr<Model> model = Model::load(directory, {.device = at::kMeta});
      int64_t num_values = 0;
      for (const NamedParameter& parameter : model->parameters())
        num_values += parameter.tensor.numel();
      result_.facts.insert(result_.facts.begin(),
                           {"model", fmt::format("{}: {} parameters", directory, num_values)});
      for (const std::string& name : model->unused_tensors())
        result_.warnings.push_back(
            fmt::format("the checkpoint's tensor {} is not used by this model", name));
    });
  }

  void check_wandb() {
    if (!settings_.output.reports_to("wandb")) return;
    problems_.attempt([&] {
      if (const auto text = missing_wandb()) result_.warnings.push_back(*text);
    });
  }

  /// Compares the resumed checkpoint with the configuration, as far as possible without the model.
  void check_resume() {
    if (!settings_.checkpoints.resume_from_checkpoint) return;
    problems_.attempt([&] {
      const ResumeChoice choice =
          resolve_resume(*settings_.checkpoints.resume_from_checkpoint, settings_.output.run_dir);
      result_.warnings.insert(result_.warnings.end(), choice.warnings.begin(),
                              choice.warnings.end());
      result_.facts.emplace_back("resumes from", choice.checkpoint.value_or("nothing: a new run"));
      if (!choice.checkpoint || !parts_.train_data) return;
      FingerprintInput input = fingerprint_input(settings_, num_ranks_);
      input.dataset_hash = parts_.train_data->content_hash();
      input.num_samples = parts_.train_data->size();
      input.num_long_dropped = parts_.num_long_dropped;
      compare_known_values(read_saved_fingerprint(*choice.checkpoint), make_fingerprint(input),
                           *choice.checkpoint);
    });
  }

  void check_run_directory() {
    problems_.attempt([&] { RunLock::require_free(settings_.output.run_dir); });
    problems_.attempt([&] { refuse_to_replace_inputs(config_); });
    problems_.attempt([&] {
      fs::path nearest = fs::absolute(settings_.output.run_dir).lexically_normal();
      std::error_code unseen;  // a directory that cannot be searched
      while (!fs::exists(nearest, unseen) && nearest.has_relative_path())
        nearest = nearest.parent_path();
      const bool is_directory = fs::is_directory(nearest, unseen);
      if (is_directory && ::access(nearest.c_str(), W_OK | X_OK) == 0) return;
      throw UserError(ErrorKind::kEnvironment,
                      {.error = "the run directory cannot be written",
                       .where = settings_.output.run_dir,
                       .what = fmt::format("{} is {}", nearest.string(),
                                           is_directory ? "not writable" : "not a directory"),
                       .fix = "set training.output_dir to a place you can write to"});
    });
    result_.facts.emplace_back("run directory", settings_.output.run_dir);
  }

  const ConfigResult& config_;
  const Settings& settings_;
  std::string device_;
  int num_ranks_;
  Problems problems_{/*collects=*/true};
  Preflight result_;
  std::ostringstream nowhere_, warnings_;
  Terminal terminal_{nowhere_, warnings_, {}};
  SessionParts parts_;
};

}  // namespace

Preflight preflight(const ConfigResult& config, const std::string& device, int num_ranks) {
  return Checks(config, device, num_ranks).run();
}

}  // namespace rematch
