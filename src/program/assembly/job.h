#pragma once
#include <c10/core/Device.h>

#include <memory>
#include <optional>
#include <string>

#include "base/observe/terminal.h"
#include "base/output_file.h"
#include "engine/ranks/group.h"
#include "engine/rollout/vllm/vllm_options.h"
#include "learn/data/order_score.h"
#include "model/vision/pixel_store.h"
#include "program/assembly/ask.h"
#include "program/assembly/open.h"

namespace rematch {

class Model;

/// The place where a job runs. Terminal and group must outlive the job.
struct Place {
  std::string device = "auto";  ///< value of --device
  Terminal& terminal;
  Group& group = alone();
};

/// The files that a run of this configuration reads, so that commands do not overwrite them: the
/// configuration with its bases, every file named by a value (data, prompts, synonyms), and the
/// files of the model.
InputFiles run_inputs(const ConfigResult& config);

/// The common start of every command with a model: settings that stay as they are, and everything
/// that can be checked without weights.
struct Job {
  JobSource source;
  Use use;
  Terminal& terminal;
  Group& group;
  /// ranks that share a vLLM engine with this one; null when it has its own
  std::unique_ptr<Group> engine_ranks;
  at::Device device;
  ModelFiles files;
  Data data;
  std::unique_ptr<PixelStore> pixels;
  /// with `custom.object_ordering: own`: that of the checkpoint, if it is known yet
  std::shared_ptr<const OrderScore> order = nullptr;

  const Settings& settings() const { return source.config.settings; }
  bool is_first() const { return group.rank() == 0; }
  /// True if the command generates answers.
  bool rolls_out() const { return rematch::rolls_out(use, settings()); }
  /// The files that the job reads, so that no command replaces them: configuration, data, images to
  /// answer for, model. Cost: linear in the validation records.
  InputFiles inputs() const;
};

/// Opens a job: prints note and warnings, checks that all ranks have the same configuration, then
/// backend and device, model files and data, with cheap checks before slow work (BEHAVIOUR 4.3).
/// Every rank calls it.
/// @throws UserError, on all ranks if on any; Interrupted
Job open_job(JobSource source, Use use, const Place& place);

/// The findings of check_job(); absent where a problem was found.
struct CheckedJob {
  at::Device device = at::kCPU;
  std::optional<ModelFiles> files = {};
  Data data = {};
};

/// Checks device, backend, model files and data of a configuration, as open_job() does.
/// @param num_ranks  ranks of the job, on one host
/// @param report  collects
CheckedJob check_job(const Settings& settings, Use use, const std::string& device, int num_ranks,
                     Report& report);

/// Loads the weights of a job's model, attaches its adapter and checks that all ranks read the same
/// inputs. Every rank calls it.
/// @param weights  checkpoint with the weights (resume); empty = `model.model`
/// @throws UserError, on all ranks if on any
std::shared_ptr<Model> load_model(const Job& job, const std::string& weights = "");

}  // namespace rematch
