#include "program/assembly/ask.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "learn/data/order_score.h"
#include "learn/estep/answer/checkpoint_format.h"
#include "learn/resume/find_model.h"
#include "model/checkpoint/image_area.h"
#include "model/checkpoint/model_dir.h"
#include "model/checkpoint/peft.h"
#include "model/vision/patches.h"
#include "program/config/schema.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPacked =
    "the base is packed to 4 bits, as it was while the adapter was trained on it; `eval`, `probe` "
    "and `rollout` take the full base with --set model.load_in_4bit=false";
constexpr const char* kPackedOtherwise =
    "the base is packed to 4 bits otherwise than while the adapter was trained on it";
constexpr int kLongestAnswer = 1024;  ///< tokens, where no checkpoint says it

void add_line(std::string& lines, const std::string& line) {
  if (!line.empty()) lines += (lines.empty() ? "" : "\n") + line;
}

/// Last component, also of "runs/a/"; "" for ".", ".." and "/".
std::string last_name(const fs::path& path) {
  const std::string name = (path / "").lexically_normal().parent_path().filename().string();
  return name == ".." ? "" : name;
}

/// The run that a checkpoint belongs to; "" for any other directory.
std::string run_of_checkpoint(const std::string& directory) {
  const fs::path run = (fs::path(directory) / "").lexically_normal().parent_path().parent_path();
  return !run.empty() && is_file(run / "args.json") ? run.string() : "";
}

/// Makes images as large as those that the checkpoint of an adapter was trained with.
/// @param settings  with the base model's directory
/// @return a warning if the base's image processor has other sizes; empty otherwise
/// @throws UserError (data) if it differs in more than sizes (patches, normalisation): answers
/// would be about other pixels than those of training
std::string adopt_image_area(Settings& settings, const std::string& adapter_dir) {
  if (!has_image_processor(adapter_dir)) return "";
  const std::string& base_dir = settings.model.directory;
  const PatchOptions trained = PatchOptions::from_model_dir(adapter_dir);
  settings.images.min_pixels = trained.min_pixels;
  settings.images.max_pixels = trained.max_pixels;
  if (!has_image_processor(base_dir)) return "";
  PatchOptions base = PatchOptions::from_model_dir(base_dir);
  const auto [min_pixels, max_pixels] = std::pair(base.min_pixels, base.max_pixels);
  base.backend = trained.backend;  // the configuration or rematch_prompt.json chooses it
  base.min_pixels = trained.min_pixels;
  base.max_pixels = trained.max_pixels;
  if (base != trained) {
    throw data_error(
        {.error = "the base's image processor is not the one the adapter was trained "
                  "with",
         .where = base_dir,
         .what = fmt::format("patches, resizing or normalisation differ from {}", adapter_dir),
         .fix = "use the base that the adapter was trained on, or copy its "
                "preprocessor_config.json into this directory"});
  }
  if (min_pixels == trained.min_pixels && max_pixels == trained.max_pixels) return "";
  return fmt::format(
      "{} resizes images to areas of {} to {} pixels; the adapter {} was trained with {} to {}, "
      "which are used",
      base_dir, min_pixels, max_pixels, adapter_dir, trained.min_pixels, trained.max_pixels);
}

/// True for a key that decides how answers are decoded or matched.
bool decides_scores(const std::string& key) {
  return key != kRolloutMatching + ".temperature_coord" &&  // of a loss
         std::ranges::any_of(
             std::array{"candidate_top_k", "fp_cost", "fn_cost", "label_match", "maskiou_",
                        "match_policy", "repeat_terminate.", "repetition_penalty", "temperature",
                        "top_"},
             [&](const char* start) { return key.starts_with(kRolloutMatching + "." + start); });
}

/// The values of a run; empty without one.
Json run_values(const std::string& run) {
  Json saved = run.empty() ? Json() : read_json_file(join_path(run, "args.json"));
  return saved.is_object() ? saved : Json::object();
}

/// The value of a key; null without one.
Json value_of(const Json& run, std::string key) {
  std::ranges::replace(key, '.', '/');
  return run.value(Json::json_pointer("/" + key), Json());
}

std::string text_of(const Json& run, const std::string& key) {
  const Json value = value_of(run, key);
  return value.is_string() ? value.get<std::string>() : "";
}

/// The directories that relative paths of a run may begin in: where it was started as it says, or
/// where it lies at its place below. Without either: the current one.
std::vector<fs::path> starts_of_run(const std::string& run_dir, const fs::path& place) {
  std::vector<fs::path> starts;
  const std::string file = join_path(run_dir, "effective_config.txt");
  const std::string text = is_file(file) ? read_file(file) : "";
  if (const size_t at = text.rfind(kStartedIn); at != text.npos)
    starts.push_back(python_strip(text.substr(at + std::string_view(kStartedIn).size())));
  fs::path above = run_dir;
  for (const fs::path& part : place) above /= part.empty() || part == "." ? "" : "..";
  std::error_code error;
  if (place.is_relative() && fs::equivalent(above / place, run_dir, error)) starts.push_back(above);
  if (starts.empty()) starts.push_back("");
  return starts;
}

/// The file that a key of a run names.
/// @throws UserError (environment) if it is gone, unless the question names another one
std::string path_of_run(const std::string& key, const Json& run, const std::string& run_dir,
                        const Strings& overrides) {
  const std::string path = text_of(run, key);
  const bool is_set = std::ranges::any_of(
      overrides, [&](const std::string& each) { return each.starts_with(key + "="); });
  if (is_set || path.empty() || path.front() == '/') return path;
  const fs::path place =
      fs::path(text_of(run, "training.output_dir")) / text_of(run, "training.run_name");
  Strings missing;
  for (const fs::path& start : starts_of_run(run_dir, place.lexically_normal())) {
    std::error_code error;
    const std::string file = fs::weakly_canonical(start / path, error).string();
    if (is_file(file)) return fs::equivalent(start, ".", error) ? path : file;
    missing.push_back(file);
  }
  throw UserError(ErrorKind::kEnvironment, {.error = "a file of the run is missing",
                                            .where = key + ": " + path,
                                            .what = "there is no " + join(missing, " or "),
                                            .fix = fmt::format("name it: --set {}=FILE", key)});
}

/// Assignments of the run's values that decide scores, where they are not the defaults.
/// @param is_about_images  only the penalty and the guard of repeats
Strings run_scoring(const Json& run, const std::string& run_dir, const Strings& asked,
                    bool is_about_images) {
  Strings overrides;
  for (const KeySpec& spec : schema()) {
    if (!decides_scores(spec.path) ||
        (is_about_images && !spec.path.starts_with(kRolloutMatching + ".repe")))
      continue;
    Json value = value_of(run, spec.path);
    if (value.is_null() || value == to_json(spec.fallback)) continue;
    if (spec.path.ends_with(".label_match") && value != "exact")
      value = path_of_run(spec.path, run, run_dir, asked);
    overrides.push_back(spec.path + "=" + value.dump());
  }
  return overrides;
}

/// `custom.val_jsonl` of a run.
/// @throws UserError (config) without one
std::string run_records(const Json& run, const std::string& run_dir, const Asked& asked) {
  const std::string key = "custom.val_jsonl";
  if (value_of(run, key).is_string()) return path_of_run(key, run, run_dir, asked.overrides);
  throw config_error({.error = "a model directory needs records to be asked about",
                      .where = asked.model,
                      .what = "no JSONL was given after it",
                      .fix =
                          "give the records too, as in `rematch eval MODEL data/val.jsonl`, or a "
                          "YAML configuration"});
}

JobSource ask_configured(const Asked& asked) {
  Settings base;
  if (!asked.records.empty()) base.data.val_jsonl = asked.records;
  JobSource source{.config = load_config(asked.model, asked.overrides, 1, base)};
  Settings& settings = source.config.settings;
  if (!asked.records.empty()) settings.data.val_jsonl = asked.records;
  if (!asked.answer_format.empty()) settings.data.answer_format = asked.answer_format;
  const std::string& model = settings.model.directory;
  source.checkpoint = {.path = model, .base = model, .run = run_of_checkpoint(model)};
  const std::string& run_dir = settings.output.run_dir;
  std::error_code error;
  if (is_file(join_path(run_dir, "logging.jsonl")) &&
      !fs::equivalent(source.checkpoint.run, run_dir, error))
    source.checkpoint.note =
        fmt::format("asks {}; `rematch eval {}` asks that run", model, shell_word(run_dir));
  return source;
}

/// A question about a checkpoint.
JobSource ask_checkpoint(Asked asked, bool is_about_images) {
  JobSource source{.checkpoint = find_checkpoint(asked.model, asked.adapter),
                   .force_base = asked.force_base};
  Checkpoint& checkpoint = source.checkpoint;
  require_model_dir(checkpoint.base);
  const Json run = run_values(checkpoint.run);
  Strings overrides = run_scoring(run, checkpoint.run, asked.overrides, is_about_images);
  if (!is_about_images && asked.records.empty())
    asked.records = run_records(run, checkpoint.run, asked);
  Settings base = settings_to_ask(checkpoint, asked);
  if (is_about_images) base.data.train_files = {{.path = checkpoint.path}};  // is not read
  overrides.insert(overrides.end(), asked.overrides.begin(), asked.overrides.end());
  source.config = load_config("", overrides, 1, base);
  Settings& settings = source.config.settings;
  if (is_about_images) settings.prompt = base.prompt;  // no key can make it blank
  if (checkpoint.packed && settings.model.load_in_4bit)
    add_line(checkpoint.note,
             settings.model.four_bit == *checkpoint.packed ? kPacked : kPackedOtherwise);
  if (checkpoint.is_adapter) add_line(checkpoint.note, adopt_image_area(settings, checkpoint.path));
  return source;
}

}  // namespace

std::string name_of_evaluated(const std::string& model_dir, const std::string& run_dir) {
  const std::string name = last_name(model_dir);
  if (name.empty()) return "model";
  if (!name.starts_with("checkpoint-")) return name;
  std::error_code error;
  const fs::path parent = fs::weakly_canonical(model_dir, error).parent_path();
  const std::string run = last_name(parent);
  if (error || run.empty() || fs::equivalent(parent, run_dir, error)) return name;
  return run + "-" + name;
}

Checkpoint find_checkpoint(const std::string& model, const std::string& adapter) {
  const NamedModel found = find_model(adapter.empty() ? model : adapter);
  Checkpoint checkpoint{.path = found.path,
                        .base = found.path,
                        .is_adapter = !adapter.empty() || is_adapter_dir(found.path),
                        .prompt = read_stored_prompt(found.path),
                        .run = run_of_checkpoint(found.path)};
  if (checkpoint.is_adapter) {
    const PeftAdapter peft = read_peft_adapter(found.path);
    const NamedModel base =
        adapter.empty() ? NamedModel{named_base_model(peft, found.path), ""} : find_model(model);
    checkpoint.base = base.path;
    checkpoint.packed = peft.config.base.packed;
    checkpoint.note = base.note;
  }
  add_line(checkpoint.note, found.note);
  return checkpoint;
}

Settings settings_to_ask(const Checkpoint& checkpoint, const Asked& asked) {
  Settings settings;
  settings.variant = TrainerVariant::kRolloutMatching;
  settings.rollouts = true;
  settings.model.directory = checkpoint.base;
  settings.model.load_in_4bit = checkpoint.packed.has_value();
  settings.model.four_bit = checkpoint.packed.value_or(FourBitSettings{});
  settings.backend = asked.backend;
  settings.output.run_name = name_of_evaluated(checkpoint.path);
  if (const fs::path run = checkpoint.run; !run.empty()) {
    settings.output.output_dir = run.has_parent_path() ? run.parent_path().string() : ".";
    settings.output.run_name = run.filename().string();
  }
  settings.generation.max_new_tokens = kLongestAnswer;
  if (!asked.records.empty()) {
    settings.data.train_files = {{.path = asked.records}};
    settings.data.val_jsonl = asked.records;
  }
  if (const std::optional<StoredPrompt>& stored = checkpoint.prompt) {
    check_stored_format(*stored, checkpoint.path);
    settings.data.answer_format = stored->answer_format;
    settings.images.image_backend = stored->image_backend;
    settings.prompt = stored->texts;
    settings.generation.max_new_tokens = stored->max_new_tokens;
  }
  if (path_exists(fs::path(checkpoint.path) / kOrderFile))
    settings.data.object_ordering = ObjectOrdering::kOwn;
  if (!asked.answer_format.empty()) settings.data.answer_format = asked.answer_format;
  if (asked.texts.system_prompt) settings.prompt.system_prompt = asked.texts.system_prompt;
  if (asked.texts.user_prompt) settings.prompt.user_prompt = asked.texts.user_prompt;
  if (asked.max_new_tokens > 0) settings.generation.max_new_tokens = asked.max_new_tokens;
  return settings;
}

bool has_own_weights(const JobSource& source) {
  const ModelSettings& model = source.config.settings.model;
  const std::optional<FourBitSettings>& packed = source.checkpoint.packed;
  return !source.force_base && model.load_in_4bit == packed.has_value() &&
         (!packed || model.four_bit == *packed);
}

std::string scoring_text(const ConfigResult& config) {
  std::string text;
  for (const EffectiveValue& row : config.effective) {
    if (decides_scores(row.key) && !row.key.ends_with(".label_match") &&
        row.typed != find_key(row.key)->fallback)
      text += row.key + " " + row.value + "\n";
  }
  return text;
}

JobSource ask_about_records(const Asked& asked) {
  return names_configuration(asked.model) ? ask_configured(asked) : ask_checkpoint(asked, false);
}

JobSource ask_about_images(const Asked& asked) { return ask_checkpoint(asked, true); }

}  // namespace rematch
