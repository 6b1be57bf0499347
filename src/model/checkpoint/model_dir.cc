#include "model/checkpoint/model_dir.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/missing_path.h"
#include "base/path_from.h"
#include "base/text.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

bool is_companion(const std::string& name) {
  static const Strings kNames = {"config.json",
                                 "generation_config.json",
                                 "tokenizer.json",
                                 "tokenizer_config.json",
                                 "special_tokens_map.json",
                                 "added_tokens.json",
                                 "vocab.json",
                                 "merges.txt",
                                 "chat_template.json",
                                 "chat_template.jinja",
                                 "processor_config.json",
                                 "preprocessor_config.json",
                                 "video_preprocessor_config.json"};
  return contains(kNames, name) || name.starts_with("README") || name.starts_with("LICENSE") ||
         name.starts_with("NOTICE") || (name.size() > 3 && name.ends_with(".py"));
}

void add_model_files(InputFiles& inputs, const std::string& directory) {
  std::error_code error;
  for (auto entry = fs::directory_iterator(directory, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (is_companion(name) || name.ends_with(".safetensors") || name.ends_with(".index.json") ||
        name.starts_with("adapter_") || name.starts_with("rematch_"))
      inputs.add(entry->path().string());
  }
}

/// The base model that an adapter names; "" for a model. Errors in the file are reported when the
/// adapter is read.
std::string read_base_model(const std::string& directory) {
  const std::string path = join_path(directory, "adapter_config.json");
  if (!is_file(path)) return "";
  try {
    const Json config = read_json_file(path);
    const auto base = config.find("base_model_name_or_path");
    return base != config.end() && base->is_string() ? base->get<std::string>() : "";
  } catch (const UserError&) {
    return "";
  }
}

/// Names for a missing checkpoint: the one that a run moved aside, else those that are there.
std::string known_neighbours(const std::string& path) {
  const fs::path missing = fs::path(path).lexically_normal();
  Strings moved, there;
  std::error_code error;
  for (auto entry = fs::directory_iterator(missing.parent_path(), error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("abandoned-") && path_exists(entry->path() / missing.filename()))
      moved.push_back((entry->path() / missing.filename()).string());
    if (name.starts_with("checkpoint-")) there.push_back(entry->path().string());
  }
  if (!moved.empty()) return "a later run moved it: use " + moved.front();
  std::ranges::sort(there);
  return there.empty() ? "" : "there are: " + join(there, ", ");
}

void copy_one(const fs::path& from, const fs::path& to) {
  write_file(to.string(), read_file(from.string()));
}

}  // namespace

void require_model_dir(const std::string& path) {
  const fs::path directory(path);
  if (path_exists(directory / "adapter_config.json") && !path_exists(directory / "config.json")) {
    throw config_error({.error = "this is a PEFT adapter, not a model",
                        .where = path,
                        .what = "it holds an adapter_config.json and no config.json",
                        .fix = fmt::format("run `rematch merge {} --out DIR` and use DIR", path)});
  }
  if (is_dir(path)) return;
  const std::string neighbours = known_neighbours(path);
  const std::string fix =
      !neighbours.empty() ? neighbours
      : looks_like_hub_id(path)
          ? fmt::format(
                "if this is a model of the hub, download it first: `hf download {} "
                "--local-dir {}`; then use that directory",
                path, split(path, '/')[1])
          : "use the directory that contains config.json; to download a model from the hub: `hf "
            "download OWNER/NAME --local-dir DIR`";
  if (!path_exists(path)) throw missing_path("model", path.empty() ? "model" : path, fix);
  throw config_error(
      {.error = "the model is not a directory", .where = path, .what = "it is a file", .fix = fix});
}

void require_empty_output(const std::string& directory) {
  std::error_code error;
  const bool exists = path_exists(directory), is_directory = is_dir(directory),
             is_link = fs::is_symlink(directory, error);
  if (exists ? is_directory && fs::is_empty(directory, error) : !is_link) return;
  throw config_error({.error = "the output cannot be written there",
                      .where = directory.empty() ? "--out" : directory,
                      .what = !exists         ? "nothing is there" + existing_names(directory)
                              : !is_directory ? "it is a file"
                                              : "the directory is not empty",
                      .fix = "choose a new directory, or remove this one"});
}

void add_model(InputFiles& inputs, const std::string& directory) {
  if (directory.empty()) return;
  add_model_files(inputs, directory);
  if (const std::string base = read_base_model(directory); !base.empty())
    add_model_files(inputs, base);
}

void copy_companions(const std::string& source_dir, const std::string& directory,
                     const Strings& except) {
  const auto wanted = [&](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    return entry.is_regular_file() && is_companion(name) && !contains(except, name);
  };
  for (const auto& entry : fs::directory_iterator(source_dir)) {
    if (wanted(entry)) copy_one(entry.path(), fs::path(directory) / entry.path().filename());
  }
  const fs::path templates = fs::path(source_dir) / "additional_chat_templates";
  if (!is_dir(templates)) return;
  make_directories((fs::path(directory) / templates.filename()).string());
  for (const auto& entry : fs::directory_iterator(templates)) {
    if (entry.is_regular_file())
      copy_one(entry.path(), fs::path(directory) / templates.filename() / entry.path().filename());
  }
}

}  // namespace rematch
