#include "program/assembly/adapter_setup.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/adapter.h"
#include "model/adapter_targets.h"
#include "model/checkpoint/hf_dir.h"
#include "model/checkpoint/image_area.h"
#include "model/checkpoint/peft.h"
#include "model/checkpoint/quantisation.h"
#include "model/coord_rows.h"
#include "model/families/family.h"
#include "model/four_bit_reader.h"
#include "model/packed_linears.h"
#include "model/vision/patches.h"

namespace rematch {
namespace {

constexpr const char* kCoordTokens = "coord_tokens";

// Tries the text of a token first, since digits may be a token.
int64_t find_token(const std::string& entry, const Tokenizer& tokenizer) {
  if (const std::optional<TokenId> id = tokenizer.token_id(entry)) return *id;
  int64_t id = -1;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), id);
  if (error == std::errc() && end == entry.data() + entry.size() && id >= 0) return id;
  throw UserError(ErrorKind::kConfig,
                  {.error = fmt::format("`{}` is not a token", entry),
                   .where = "tuner.trainable_token_indices",
                   .what = "neither `coord_tokens`, nor an id, nor the text of a token",
                   .fix = "write `coord_tokens`, or ids and texts of the model's tokenizer"});
}

/// @param model_dir  directory of the tokenizer, for errors
std::vector<int64_t> token_ids(const std::vector<std::string>& entries, const Tokenizer& tokenizer,
                               const std::string& model_dir) {
  std::set<int64_t> ids;
  for (const std::string& entry : entries) {
    if (entry == kCoordTokens) {
      const CoordVocab coords = CoordVocab::from(tokenizer, model_dir);
      ids.insert(coords.ids().begin(), coords.ids().end());
    } else {
      ids.insert(find_token(entry, tokenizer));
    }
  }
  return {ids.begin(), ids.end()};
}

AdapterTargets target_options(const Settings& settings, const ModelDescription& model,
                              const Tokenizer& tokenizer) {
  AdapterTargets options{settings.tuner.targets};
  options.token_ids =
      token_ids(options.trainable_token_indices, tokenizer, settings.model.directory);
  options.is_frozen = [freeze = settings.tuner.freeze,
                       part_of = model.part_of](const std::string& parameter) {
    const ParameterPart part = part_of(parameter);
    return part == ParameterPart::kVit       ? freeze.vit
           : part == ParameterPart::kAligner ? freeze.aligner
                                             : freeze.llm;
  };
  return options;
}

void warn_about_fresh_coords(const Model& model, const AdapterSelection& selection,
                             const CoordVocab& coords, Terminal& terminal) {
  const std::vector<int64_t> ids(coords.ids().begin(), coords.ids().end());
  const std::set<int64_t> trained(selection.token_ids.begin(), selection.token_ids.end());
  if (std::all_of(ids.begin(), ids.end(), [&](int64_t id) { return trained.count(id) != 0; }))
    return;
  const TextDescription& text = model.description().text;
  for (const std::string& name : {text.embedding + ".weight", text.head.module + ".weight"}) {
    const at::Tensor table = model.parameter(name);
    const std::vector<std::string>& saved = selection.saved_parameters;
    if (!table.defined() || std::find(saved.begin(), saved.end(), name) != saved.end() ||
        !rows_look_untrained(table, ids))
      continue;
    terminal.warn(
        fmt::format("the rows of the coord tokens in {} were never trained, and this adapter does "
                    "not train them: set "
                    "`tuner.trainable_token_indices: [{}]`, or train the model in full first",
                    name, kCoordTokens));
    return;
  }
}

}  // namespace

void check_adapter_targets(const Settings& settings, const Tokenizer& tokenizer) {
  const std::string& directory = settings.model.directory;
  const ModelDescription description = describe_model(directory);
  const auto files = HfDir::open(directory, description.file_names);
  std::vector<std::string> names = files->names();
  std::erase_if(names, is_four_bit_state);
  const AdapterSelection selection =
      select_targets(description, names, target_options(settings, description, tokenizer));
  std::set<std::string> packed;
  for (const LinearDescription& linear : description.linears()) {
    const std::string name = linear.module + ".weight";
    if ((files->has(name) && is_four_bit(*files, name)) ||
        (settings.model.load_in_4bit &&
         is_packed_at_load(settings.model.four_bit, description.text.head.module, linear.module)))
      packed.insert(name);
  }
  for (const std::string& name : selection.saved_parameters) {
    if (packed.count(name) != 0)
      refuse_packed_in_full(name, ErrorKind::kConfig, "tuner.modules_to_save");
  }
}

bool is_in_four_bits(const ModelSettings& model) {
  return model.load_in_4bit || stored_quantisation(model.directory);
}

void require_adapter_in_four_bits(const Settings& settings) {
  if (settings.tuner.train_type == TrainType::kLora || !is_in_four_bits(settings.model)) return;
  throw UserError(ErrorKind::kConfig,
                  {.error = "a model in 4 bits cannot be trained in full",
                   .where = "tuner.train_type",
                   .what = settings.model.load_in_4bit ? "model.load_in_4bit is true"
                                                       : "the checkpoint's weights are quantised",
                   .fix = "set `tuner.train_type: lora`, or use weights in full precision"});
}

std::vector<NamedParameter> all_parameters(const Model& model) {
  std::vector<NamedParameter> parameters = model.parameters();
  if (!model.adapter()) return parameters;
  for (const NamedParameter& parameter : model.adapter()->parameters()) {
    if (!model.parameter(parameter.name).defined()) parameters.push_back(parameter);
  }
  return parameters;
}

void attach_adapter(Model& model, const Settings& settings, const AnswerFormat& format,
                    const std::string& saved_dir, Terminal& terminal) {
  const TunerSettings& tuner = settings.tuner;
  std::vector<std::string> names;
  int64_t num_base_values = 0, num_values = 0;
  for (const NamedParameter& parameter : model.parameters()) {
    names.push_back(parameter.name);
    num_base_values += parameter.tensor.numel();
  }
  const AdapterSelection selection =
      select_targets(model.description(), names,
                     target_options(settings, model.description(), format.tokenizer()));
  if (format.coords() != nullptr)
    warn_about_fresh_coords(model, selection, *format.coords(), terminal);
  const bool all_linear = !tuner.targets.target_regex &&
                          tuner.targets.target_modules == std::vector<std::string>{"all-linear"};
  if (selection.num_frozen > 0 && !all_linear) {
    terminal.warn(
        fmt::format("{} targeted modules get no adapter: their part is frozen (tuner.freeze_*)",
                    selection.num_frozen));
  }
  AdapterBase base = describe_base(settings.model.directory);
  const auto adapter = Adapter::create(model, selection,
                                       {.lora = tuner.lora,
                                        .seed = settings.seed,
                                        .base_model = std::move(base.path),
                                        .base = {.weights_hash = std::move(base.weights_hash),
                                                 .packed = settings.model.quantisation()}});
  if (!saved_dir.empty()) adapter->set_values(read_peft_adapter(saved_dir), saved_dir);
  for (const NamedParameter& parameter : adapter->parameters())
    num_values += parameter.tensor.numel();
  terminal.say(fmt::format(
      "{} of rank {} on {} Linear layers: {} values are trained, {:.2f} % of the base model's {}",
      tuner.lora.use_dora ? "DoRA" : "LoRA", tuner.lora.rank, selection.modules.size(), num_values,
      100.0 * static_cast<double>(num_values) / static_cast<double>(num_base_values),
      num_base_values));
}

void load_adapter(Model& model, const AdapterUse& use, Terminal& terminal) {
  const std::string note = check_adapter_base(use);
  if (use.force_base && !note.empty()) {
    terminal.warn(note);
  } else if (!note.empty()) {
    terminal.say("note: " + note);
  }
  Adapter::load(model, use.adapter, use.adapter_dir);
}

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
    throw UserError(
        ErrorKind::kData,
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

}  // namespace rematch
