#include "assembly/preflight.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>

#include "assembly/adapter_setup.h"
#include "assembly/carry_optimizer.h"
#include "assembly/long_samples.h"
#include "assembly/session_checks.h"
#include "assembly/vllm_setup.h"
#include "base/text.h"
#include "checkpoint/model_dir.h"
#include "ranks/device.h"
#include "ranks/nccl_group.h"
#include "estep/match/labels.h"
#include "model/families/family.h"
#include "model/model.h"
#include "model/patch_fit.h"
#include "observe/wandb_follower.h"
#include "resume/fingerprint.h"
#include "resume/resume.h"
#include "resume/run_lock.h"
#include "resume/run_state.h"
#include "rollout/engine_factory.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

/// The parts of a run that are built from headers, each as far as it can be.
class Checks {
 public:
  Checks(const Settings& settings, std::string device, int num_ranks)
      : settings_(settings), device_(std::move(device)), num_ranks_(num_ranks) {}

  Preflight run() {
    const bool evaluates = settings_.data.val_jsonl && settings_.cadence.eval_when != When::kNever;
    if (!attempt([&] { dtype_on(choose_device(device_), settings_.model.dtype); })) device_ = "cpu";
    if (num_ranks_ > 1 && settings_.ddp_backend == DdpBackend::kNccl)
      attempt([&] { require_nccl(choose_device(device_)); });
    if (settings_.is_stage_2() || (evaluates && settings_.rollouts))
      attempt([&] { check_backend(); });
    if (settings_.output.wants_wandb()) {
      attempt([&] {
        if (const auto text = missing_wandb()) result_.warnings.push_back(*text);
      });
    }
    attempt([&] { LabelMatch::from(settings_.match.label_match); });
    if (attempt([&] { require_model_dir(settings_.model.directory); })) check_model();
    const DataSettings& data = settings_.data;
    check_data(kTrainJsonl, data.train_jsonl, data.train_sample_limit, data.on_bad_sample, true);
    if (evaluates)
      check_data("val_jsonl", *data.val_jsonl, data.val_sample_limit, OnBadSample::kStop,
                 !settings_.is_stage_2());
    check_places();
    for (const std::string& line : split(warnings_.str(), '\n')) {
      constexpr std::string_view kMark = "warning: ";
      if (line.rfind(kMark, 0) == 0) result_.warnings.push_back(line.substr(kMark.size()));
    }
    return std::move(result_);
  }

 private:
  /// @return false when it failed; what it threw is kept, once
  bool attempt(const std::function<void()>& check) {
    try {
      check();
      return true;
    } catch (const UserError& error) {
      for (const Problem& problem : error.problems()) {
        const auto is_known = [&](const auto& known) {
          return known.second.error == problem.error && known.second.where == problem.where;
        };
        if (std::none_of(result_.problems.begin(), result_.problems.end(), is_known))
          result_.problems.emplace_back(error.kind(), problem);
      }
      return false;
    }
  }

  void check_backend() {
    VllmOptions vllm;
    if (settings_.backend == "vllm")
      vllm = vllm_options_of(settings_, choose_device(device_), alone());
    vllm.world_size = vllm.ranks_on_host = num_ranks_;
    check_backend_available(settings_.backend, vllm);
  }

  void check_model() {
    const std::string& directory = settings_.model.directory;
    attempt([&] {
      tokenizer_ = Tokenizer::load(directory);
      coords_ = CoordVocab::from(*tokenizer_, directory);
      vocab_ = AnswerVocab::from(*tokenizer_, *coords_, directory);
    });
    attempt([&] { patches_ = PatchOptions::from_model_dir(directory, settings_.images); });
    if (tokenizer_ && patches_)
      attempt([&] { prompts_ = make_prompts(settings_, tokenizer_, *patches_, terminal_); });
    attempt([&] {
      const std::shared_ptr<Model> model = Model::load(directory, {.device = at::kMeta});
      int64_t num_values = 0;
      for (const NamedParameter& parameter : model->parameters())
        num_values += parameter.tensor.numel();
      result_.facts.emplace_back("model", fmt::format("{}: {} parameters", directory, num_values));
      for (const std::string& name : model->unused_tensors())
        result_.warnings.push_back(
            fmt::format("the checkpoint's tensor {} is not used by this model", name));
      if (patches_) check_patches_fit(*patches_, model->description().vision, directory);
    });
    if (settings_.tuner.train_type == TrainType::kLora && coords_) {
      attempt([&] { check_adapter_targets(settings_, *tokenizer_, *coords_); });
    }
  }

  /// @param needs_truth  the full truth of every sample must fit the cap
  void check_data(const std::string& key, const std::string& path, std::optional<int64_t> limit,
                  OnBadSample on_bad, bool needs_truth) {
    const bool single_image = settings_.is_stage_2();
    attempt([&] {
      // Without a tokenizer or an image processor, which is a problem of its own, as much as can be
      // known.
      Dataset dataset =
          tokenizer_ && patches_
              ? load_checked(path, limit, single_image, *tokenizer_, *patches_, on_bad, terminal_)
              : Dataset::load(path, {.limit = limit, .require_single_image = single_image});
      const int64_t num_samples = dataset.size();
      int64_t num_long = 0;
      if (needs_truth && prompts_ && vocab_) {
        num_long = settle_long_samples(
            dataset, settings_, {.prompts = *prompts_, .vocab = *vocab_, .patches = *patches_},
            terminal_);
      }
      if (key == kTrainJsonl) train_ = {dataset.content_hash(), num_samples, num_long};
      result_.facts.emplace_back(
          key, fmt::format("{}: {} samples{}", path, num_samples,
                           num_long > 0 ? fmt::format(", {} dropped as too long", num_long) : ""));
    });
  }

  /// What `train` will compare with a checkpoint, as far as it is known without the model.
  Fingerprint known_values() const {
    const BatchSettings& batches = settings_.batches;
    return make_fingerprint(
        {.model_dir = settings_.model.directory,
         .dataset_hash = train_->content_hash,
         .num_samples = train_->num_samples,
         .num_long_dropped = train_->num_long,
         .world_size = num_ranks_,
         .per_device_train_batch_size = batches.per_device_train_batch_size,
         .gradient_accumulation_steps = batches.gradient_accumulation_steps,
         .drop_last = batches.drop_last,
         .seed = settings_.seed,
         .trainer_variant = name_of(settings_.variant),
         .packing = settings_.pack.enabled,
         .pack_scope = name_of(settings_.pack.scope),
         .packing_length = static_cast<int>(settings_.model.global_max_length.value_or(0)),
         .m_steps = settings_.rollout_buffer.steps_per_window(),
         .freeze_llm = settings_.tuner.freeze.llm,
         .freeze_vit = settings_.tuner.freeze.vit,
         .freeze_aligner = settings_.tuner.freeze.aligner});
  }

  void check_places() {
    const CheckpointSettings& checkpoints = settings_.checkpoints;
    if (checkpoints.resume_from_checkpoint) {
      attempt([&] {
        const ResumeChoice choice =
            resolve_resume(*checkpoints.resume_from_checkpoint, settings_.output.run_dir);
        result_.warnings.insert(result_.warnings.end(), choice.warnings.begin(),
                                choice.warnings.end());
        result_.facts.emplace_back("resumes from",
                                   choice.checkpoint.value_or("nothing: a new run"));
        if (choice.checkpoint && train_)
          compare_known_values(read_saved_fingerprint(*choice.checkpoint), known_values(),
                               *choice.checkpoint);
      });
    } else if (checkpoints.resume_optimizer_from) {
      attempt([&] { check_carried_optimizer(*checkpoints.resume_optimizer_from); });
    }
    attempt([&] { RunLock::require_free(settings_.output.run_dir); });
    attempt([&] {
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

  /// Of the training records.
  struct TrainData {
    std::string content_hash;
    int64_t num_samples = 0, num_long = 0;
  };
  static constexpr const char* kTrainJsonl = "train_jsonl";

  const Settings& settings_;
  std::string device_;
  int num_ranks_;
  Preflight result_;
  std::ostringstream nowhere_, warnings_;
  Terminal terminal_{nowhere_, warnings_, {}};
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<CoordVocab> coords_;
  std::optional<AnswerVocab> vocab_;
  std::optional<PatchOptions> patches_;
  std::unique_ptr<PromptEncoder> prompts_;
  std::optional<TrainData> train_;
};

}  // namespace

Preflight preflight(const ConfigResult& config, const std::string& device, int num_ranks) {
  return Checks(config.settings, device, num_ranks).run();
}

}  // namespace rematch
