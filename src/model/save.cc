#include "model/save.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace rematch {
namespace {

// Returns true if a value changed. Adds no keys: without them transformers uses the weights' dtype.
bool set_dtype(Json& object, const std::string& dtype_name) {
  bool changed = false;
  for (const char* key : {"dtype", "torch_dtype"}) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_string() || *found == dtype_name) continue;
    *found = dtype_name;
    changed = true;
  }
  return changed;
}

}  // namespace

std::string config_with_dtype(const std::string& config_text, const std::string& dtype_name,
                              const std::string& where) {
  Json root = parse_json(config_text, where);
  if (!root.is_object()) return config_text;
  bool changed = set_dtype(root, dtype_name);
  for (const char* tower : {"text_config", "vision_config"}) {
    const auto found = root.find(tower);
    if (found != root.end() && found->is_object())
      changed = set_dtype(*found, dtype_name) || changed;
  }
  return changed ? python_json(root, 2) + "\n" : config_text;
}

void untie_config(Json& config) {
  config["tie_word_embeddings"] = false;
  const auto text = config.find("text_config");
  if (text != config.end() && text->is_object() && text->contains("tie_word_embeddings"))
    (*text)["tie_word_embeddings"] = false;
}

void save_hf_model(const std::string& source_dir, const Model& model, const std::string& directory,
                   const SaveOptions& options) {
  const ModelDescription& description = model.description();
  const auto source = description.file_names.empty() && description.carried.empty()
                          ? nullptr
                          : HfDir::open(source_dir, description.file_names);
  std::vector<TensorEntry> tensors;
  for (const NamedParameter& parameter : model.parameters()) {
    tensors.push_back(
        {source ? source->stored_name(parameter.name) : parameter.name, parameter.tensor});
  }
  for (const std::string& name : source ? source->names() : Strings{}) {
    if (description.is_carried(name))
      tensors.push_back({source->stored_name(name), source->tensor(name)});
  }
  write_hf_weights(directory, tensors, options);
  const std::string config_path = join_path(source_dir, "config.json");
  const char* dtype_name = model.dtype() == at::kBFloat16 ? "bfloat16" : "float32";
  write_file(join_path(directory, "config.json"),
             config_with_dtype(read_file(config_path), dtype_name, config_path));
  copy_companions(source_dir, directory, {"config.json"});
}

}  // namespace rematch
