#include "program/assembly/inputs_identity.h"

#include <fmt/core.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/content_key.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "engine/ranks/gather.h"
#include "engine/ranks/meeting.h"
#include "learn/estep/match/labels.h"
#include "model/adapter.h"
#include "model/checkpoint/hf_dir.h"
#include "model/sampled_hash.h"
#include "program/assembly/load_model.h"

namespace rematch {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

// Files besides the weights that the program, transformers or vLLM read.
constexpr const char* kModelFiles[] = {"config.json",
                                       "generation_config.json",
                                       "preprocessor_config.json",
                                       "processor_config.json",
                                       "video_preprocessor_config.json",
                                       "chat_template.json",
                                       "chat_template.jinja",
                                       "tokenizer_config.json",
                                       "special_tokens_map.json",
                                       "added_tokens.json",
                                       "tokenizer.json",
                                       "vocab.json",
                                       "merges.txt"};
constexpr size_t kMaxShown = 80;        // a longer value is shown as its hash
constexpr size_t kMaxParsed = 1 << 16;  // files of tokens count as a whole

std::string shown(std::string_view text) {
  return text.size() <= kMaxShown ? std::string(text)
                                  : fmt::format("content {}", content_hash_of(text));
}

void add_file(Pairs& pairs, const std::string& name, const std::string& text) {
  if (name.ends_with(".json") && text.size() <= kMaxParsed) {
    try {
      const Json json = parse_json(text, name);
      if (json.is_object() && !json.empty()) {
        pairs.emplace_back(name, "present");  // before its values: an absent file has none
        const Json values = json.flatten();   // with keys such as "/image_mean/0"
        for (const auto& value : values.items())
          pairs.emplace_back(name + ": " + value.key().substr(1), shown(value.value().dump()));
        return;
      }
    } catch (const UserError&) {  // reported where the file is needed
    }
  }
  pairs.emplace_back(name, fmt::format("content {}", content_hash_of(text)));
}

/// Parameters with their files on rank 0. Other hosts may have the same weights in other shards.
Pairs weight_files(const std::string& directory, const Model& model) {
  Pairs names;
  std::shared_ptr<const HfDir> files;
  try {
    files = HfDir::open(directory, model.description().file_names);
  } catch (const UserError&) {
    return names;  // a run that resumes takes its weights from the checkpoint
  }
  for (const NamedParameter& parameter : model.parameters()) {
    if (files->has(parameter.name))
      names.emplace_back(parameter.name, files->file_name(parameter.name));
  }
  return names;
}

void add_weights(Pairs& pairs, const Job& job, const Model& model) {
  const std::string& directory = job.settings().model.directory;
  const Pairs files =
      from_first_rank(job.group, job.is_first() ? weight_files(directory, model) : Pairs());
  std::map<std::string, std::string> names(files.begin(), files.end());
  for (const NamedParameter& parameter : all_parameters(model)) {
    const std::string file = std::filesystem::path(names[parameter.name]).filename().string();
    std::string values = "values";
    for (const at::Tensor& tensor : parameter.stored()) values += ' ' + sampled_hash(tensor);
    pairs.emplace_back((file.empty() ? "weights" : file) + ": " + parameter.name,
                       std::move(values));
  }
}

void add_records(Pairs& pairs, const char* key, const std::optional<Dataset>& data) {
  if (!data) return;
  pairs.emplace_back(fmt::format("{}: records", key),
                     fmt::format("{}, content {}", data->size(), data->content_hash()));
}

}  // namespace

Pairs model_files_identity(const std::string& model_dir) {
  Pairs pairs;
  for (const char* name : kModelFiles) {
    const std::string path = join_path(model_dir, name);
    if (is_file(path)) add_file(pairs, name, read_file(path));
  }
  return pairs;
}

void meet_with_inputs(const Job& job, const Model& model) {
  if (job.group.is_alone()) return;
  Pairs pairs = model_files_identity(job.settings().model.directory);
  pairs.emplace_back("custom.answer_format", job.files.format_name);
  pairs.emplace_back("template.system", shown(job.files.prompts->system_prompt()));
  pairs.emplace_back("custom.user_prompt", shown(job.files.prompts->user_prompt()));
  pairs.emplace_back("custom.extra.rollout_matching.label_match",
                     LabelMatch::from(job.settings().match.label_match).identity());
  add_records(pairs, "custom.train_jsonl", job.data.train);
  add_records(pairs, "custom.val_jsonl", job.data.val);
  add_weights(pairs, job, model);
  require_equal(job.group, pairs);
}

}  // namespace rematch
