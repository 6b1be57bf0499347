#include "assembly/session_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "assembly/adapter_setup.h"
#include "assembly/long_samples.h"
#include "augment/side_words.h"
#include "checkpoint/hf_dir.h"
#include "checkpoint/model_dir.h"
#include "data/overlap.h"
#include "estep/answer/checkpoint_format.h"
#include "estep/match/labels.h"
#include "model/families/family.h"
#include "model/patch_fit.h"
#include "ranks/device.h"
#include "rollout/engine_factory.h"
#include "text/chat_template.h"
#include "text/stored_prompt.h"

namespace rematch {
namespace {

// Drops samples with image sizes that the processor rejects: they have no prompt and so cannot be
// skipped later.
Dataset without_impossible_sizes(const Dataset& dataset, const PatchOptions& patches,
                                 Terminal& terminal) {
  std::vector<int64_t> impossible;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const Sample& sample = dataset.samples()[static_cast<size_t>(i)];
    try {
      processed_size({.width_px = sample.width_px, .height_px = sample.height_px}, patches,
                     sample.where);
    } catch (const UserError&) {
      impossible.push_back(i);
    }
  }
  if (impossible.empty() || static_cast<int64_t>(impossible.size()) == dataset.size())
    return dataset;
  terminal.warn(fmt::format(
      "{} of {} samples of {} are left out: the image processor rejects the size of their images",
      impossible.size(), dataset.size(), dataset.path()));
  return dataset.copy_without(impossible);
}

/// Checks that the answer format can write every object.
void check_geometries(const Dataset& dataset, const AnswerFormat& format) {
  for (const Sample& sample : dataset.samples()) {
    for (const SceneObject& object : sample.objects)
      format.check_geometry(object.geometry.kind, sample.where);
  }
}

/// Reads a JSONL and checks its records and image headers; warns on the terminal.
/// @param on_bad  kSkip: unusable images are only a warning here, and skipped when they are needed
/// @throws UserError
Dataset load_checked(const std::string& path, std::optional<int64_t> limit, bool single_image,
                     const AnswerFormat& format, const PatchOptions& patches, OnBadSample on_bad,
                     Terminal& terminal) {
  DatasetOptions options{.limit = limit,
                         .require_single_image = single_image,
                         .check_image_files = on_bad == OnBadSample::kStop};
  for (const AddedToken& token : format.tokenizer().added_tokens())
    options.forbidden_texts.push_back(token.content);
  Dataset dataset = Dataset::load(path, options);
  for (const std::string& text : dataset.warnings()) terminal.warn(text);
  check_geometries(dataset, format);
  try {
    if (const int64_t num_deep_grey = dataset.validate_images(patches); num_deep_grey > 0) {
      terminal.warn(fmt::format(
          "{} images of {} are 16-bit grey: every level above 255 becomes white, as in Pillow; "
          "scale them to 8 bits unless serving sees them so too",
          num_deep_grey, path));
    }
  } catch (const UserError& error) {
    if (on_bad == OnBadSample::kStop) throw;
    const Problem& first = error.problems().front();
    terminal.warn(
        fmt::format("{}: at least {} images cannot be used and are skipped, the first {}: {} ({})",
                    path, error.problems().size(), first.where, first.error, first.what));
  }
  return on_bad == OnBadSample::kSkip ? without_impossible_sizes(dataset, patches, terminal)
                                      : dataset;
}

/// Checks that tokenizer and model agree on the image token, and that the model has a row for each
/// id.
void check_tokenizer_fits(const Tokenizer& tokenizer, const std::string& directory) {
  const std::optional<TokenId> pad = tokenizer.token_id("<|image_pad|>");
  const ModelDescription model = describe_model(directory);
  std::string misfit;
  if (pad && *pad != model.image_token_id) {  // prompts report a missing one
    misfit = fmt::format("its <|image_pad|> is {}, image_token_id of config.json is {}", *pad,
                         model.image_token_id);
  } else if (tokenizer.num_ids() > model.text.vocab_size) {
    misfit = fmt::format("its largest id is {}, vocab_size of config.json is {}",
                         tokenizer.num_ids() - 1, model.text.vocab_size);
  }
  if (misfit.empty()) return;
  throw UserError(ErrorKind::kData,
                  {.error = "the tokenizer belongs to another model",
                   .where = directory + "/tokenizer.json",
                   .what = misfit,
                   .fix = "take tokenizer.json and config.json from the same checkpoint"});
}

/// Makes the prompt encoder of a configuration, with the model's chat template.
/// @throws UserError for a template that cannot be read, or that fails for a prompt with one image
std::unique_ptr<PromptEncoder> make_prompts(const Settings& settings, const SessionParts& parts,
                                            Terminal& terminal) {
  auto chat_template =
      std::make_shared<const ChatTemplate>(ChatTemplate::load(settings.model.directory));
  for (const std::string& text : chat_template->warnings()) terminal.warn(text);
  check_tokenizer_fits(*parts.tokenizer, settings.model.directory);
  const int merge_size = parts.patches->merge_size;
  auto prompts = std::make_unique<PromptEncoder>(
      parts.tokenizer, std::move(chat_template),
      PromptEncoder::Options{.texts = settings.prompt,
                             .built_in = answer_formats()
                                             .find(parts.format_name)
                                             .built_in_prompt(settings.data.object_ordering),
                             .merge_size = merge_size});
  prompts->encode({GridThw{1, merge_size, merge_size}});  // else every image would be blamed
  return prompts;
}

/// Loads a JSONL. Without an answer format or an image processor (reported separately) it skips the
/// checks that need them.
Dataset load_data(const SessionBuild& build, const SessionParts& parts, const std::string& path,
                  std::optional<int64_t> limit, OnBadSample on_bad) {
  const bool single_image = build.settings.is_stage_2();
  return parts.format && parts.patches
             ? load_checked(path, limit, single_image, *parts.format, *parts.patches, on_bad,
                            build.terminal)
             : Dataset::load(path, {.limit = limit, .require_single_image = single_image});
}

/// Loads all files of custom.train_jsonl; reports the problems of all files together.
Dataset load_train_files(const SessionBuild& build, const SessionParts& parts,
                         OnBadSample on_bad_sample) {
  const DataSettings& data = build.settings.data;
  check_train_files(data.train_files);
  Problems problems(/*collects=*/true);
  std::vector<Dataset> files;
  std::vector<double> weights;
  for (const TrainFile& file : data.train_files) {
    weights.push_back(file.weight);
    if (data.train_files.size() == 1) {
      files.push_back(load_data(build, parts, file.path, data.train_sample_limit, on_bad_sample));
      continue;
    }
    problems.attempt([&] {
      files.push_back(load_data(build, parts, file.path, data.train_sample_limit, on_bad_sample));
    });
  }
  std::vector<Problem> found;
  for (const auto& [kind, problem] : problems.all()) found.push_back(problem);
  if (!found.empty()) throw UserError(problems.all().front().first, std::move(found));
  return Dataset::mix(std::move(files), weights);
}

/// Prompt texts of the user; the built-in ones do not mention left or right.
std::vector<std::pair<std::string, std::string>> own_prompts(const PromptSettings& prompts) {
  return {{"template.system", prompts.system_prompt.value_or("")},
          {"custom.user_prompt", prompts.user_prompt.value_or("")}};
}

void check_augment(const SessionBuild& build, const Dataset& data) {
  const AugmentSettings& augment = build.settings.augment;
  if (augment.hflip > 0 && !augment.hflip_words)
    check_side_words(data.samples(), own_prompts(build.settings.prompt));
}

/// Handles samples that are too long. @return number of dropped samples
int64_t settle_long(const SessionBuild& build, const SessionParts& parts, Dataset& data,
                    const AugmentSettings& augment) {
  if (!parts.prompts || !parts.format) return 0;
  return settle_long_samples(data, build.settings,
                             {.prompts = *parts.prompts,
                              .format = *parts.format,
                              .patches = *parts.patches,
                              .augment = augment},
                             build.terminal);
}

/// Name of the answer format. Training uses the configured one or the default; other commands may
/// use the format of the checkpoint.
std::string format_name(const SessionBuild& build, const Tokenizer& tokenizer) {
  const std::optional<std::string>& given = build.settings.data.answer_format;
  const std::string& directory = build.settings.model.directory;
  if (!build.needs.train_data) return checkpoint_format(given, directory, tokenizer);
  std::string name = given.value_or(kDefaultAnswerFormat);
  const std::optional<StoredPrompt> stored = read_stored_prompt(directory);
  if (stored && stored->answer_format != name) {
    build.terminal.warn(fmt::format(
        "{} was trained to answer in `{}`, and is now taught `{}` (custom.answer_format)",
        directory, stored->answer_format, name));
  }
  return name;
}

void build_model_parts(const SessionBuild& build, SessionParts& parts, Problems& problems) {
  const Settings& settings = build.settings;
  const std::string& directory = settings.model.directory;
  problems.attempt([&] {
    if (const std::string text = spare_weights_warning(directory); !text.empty())
      build.terminal.warn(text);
  });
  problems.attempt([&] {
    parts.tokenizer = Tokenizer::load(directory);
    parts.format_name = format_name(build, *parts.tokenizer);
    parts.format = make_answer_format(parts.format_name, parts.tokenizer, directory);
  });
  problems.attempt(
      [&] { parts.patches = PatchOptions::from_model_dir(directory, settings.images); });
  if (parts.format && parts.patches) {
    problems.attempt([&] { parts.prompts = make_prompts(settings, parts, build.terminal); });
  }
  if (parts.patches) {
    problems.attempt(
        [&] { check_patches_fit(*parts.patches, describe_model(directory).vision, directory); });
  }
  const bool use_adapter = settings.tuner.train_type == TrainType::kLora && build.needs.train_data;
  if (use_adapter && parts.tokenizer)
    problems.attempt([&] { check_adapter_targets(settings, *parts.tokenizer); });
}

void build_data(const SessionBuild& build, SessionParts& parts, Problems& problems) {
  const DataSettings& data = build.settings.data;
  if (build.needs.train_data) {
    problems.attempt(
        [&] { parts.train_data = load_train_files(build, parts, data.on_bad_sample); });
    if (parts.train_data) problems.attempt([&] { check_augment(build, *parts.train_data); });
  }
  if (build.needs.evaluates_train_data) {
    problems.attempt([&] { parts.val_data = load_train_files(build, parts, OnBadSample::kStop); });
  } else if (build.needs.val_data) {
    problems.attempt([&] {
      parts.val_data =
          load_data(build, parts, *data.val_jsonl, data.val_sample_limit, OnBadSample::kStop);
    });
  }
  if (parts.train_data && parts.val_data) {
    for (const std::string& text : overlap_warnings(*parts.train_data, *parts.val_data))
      build.terminal.warn(text);
  }
  if (parts.train_data) {
    problems.attempt([&] {
      parts.num_long_dropped = settle_long(build, parts, *parts.train_data, build.settings.augment);
    });
  }
  if (parts.val_data && build.needs.val_truth) {
    problems.attempt(
        [&] { parts.num_long_dropped_val = settle_long(build, parts, *parts.val_data, {}); });
  }
}

}  // namespace

bool Problems::attempt(const std::function<void()>& step) {
  if (!collects_) {
    step();
    return true;
  }
  try {
    step();
    return true;
  } catch (const UserError& error) {
    for (const Problem& problem : error.problems()) {
      const auto is_known = [&](const auto& known) {
        return known.second.error == problem.error && known.second.where == problem.where;
      };
      if (std::none_of(all_.begin(), all_.end(), is_known))
        all_.emplace_back(error.kind(), problem);
    }
    return false;
  }
}

SessionParts build_session_parts(const SessionBuild& build, Problems& problems) {
  const Settings& settings = build.settings;
  SessionParts parts;
  problems.attempt([&] {
    const at::Device device = choose_device(build.device);
    dtype_on(device, settings.model.dtype);
    parts.device = device;
  });
  if (build.needs.rollouts) {
    problems.attempt([&] {
      check_backend_available(settings.backend, settings.backend == "vllm"
                                                    ? build.vllm_options(parts.device)
                                                    : VllmOptions{});
    });
  }
  // Find a wrong file of synonyms before reading the data.
  problems.attempt([&] { LabelMatch::from(settings.match.label_match); });
  if (problems.attempt([&] { require_model_dir(settings.model.directory); }))
    build_model_parts(build, parts, problems);
  build_data(build, parts, problems);
  return parts;
}

}  // namespace rematch
