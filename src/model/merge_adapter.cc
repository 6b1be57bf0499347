#include "model/merge_adapter.h"

#include <fmt/core.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/hf_dir.h"
#include "checkpoint/peft.h"
#include "model/adapter_targets.h"
#include "model/adapter_tensors.h"
#include "model/families/family.h"
#include "model/save.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

void require_free(const std::string& directory) {
  std::error_code error;
  if (!fs::exists(directory, error) || (fs::is_directory(directory, error) && fs::is_empty(directory, error))) return;
  throw UserError(ErrorKind::kConfig, {.error = "the output directory is in use",
                                       .where = directory.empty() ? "--output" : directory,
                                       .what = "it exists and is not empty",
                                       .fix = "choose a new directory, or remove this one"});
}

std::string base_of(const MergeOptions& options, const PeftAdapter& adapter) {
  if (!options.base_dir.empty()) return options.base_dir;
  const std::string& named = adapter.config.base_model;
  std::error_code error;
  if (!named.empty() && fs::is_directory(named, error)) return named;
  throw UserError(ErrorKind::kConfig, {.error = "the adapter's base model cannot be found",
                                       .where = options.adapter_dir,
                                       .what = named.empty() ? "adapter_config.json names none"
                                                             : fmt::format("adapter_config.json names {}, which is not a directory", named),
                                       .fix = "add --model DIR, the base model's Hugging Face directory"});
}

void write_config(const std::string& base_dir, const std::string& output_dir, const std::optional<at::ScalarType>& dtype) {
  const std::string path = join_path(base_dir, "config.json");
  const std::string text = read_file(path);
  FileWriter config(join_path(output_dir, "config.json"));
  config.write(dtype ? config_with_dtype(text, *dtype == at::kBFloat16 ? "bfloat16" : "float32", path) : text);
  config.finish();
}

}  // namespace

MergedAdapter merge_adapter(const MergeOptions& options) {
  require_free(options.output_dir);
  const PeftAdapter adapter = read_peft_adapter(options.adapter_dir);
  const std::string base_dir = base_of(options, adapter);
  const auto base = HfDir::open(base_dir);
  const auto shape_of = [&base](const std::string& name) -> std::optional<std::vector<int64_t>> {
    if (!base->has(name)) return std::nullopt;
    return base->shape(name);
  };
  const ModelDescription model = describe_model(base_dir);
  const AdapterTensors tensors = sort_adapter_tensors(adapter, model, shape_of, options.adapter_dir);
  if (model.tie_word_embeddings && tensors.layers.count(model.text.head.module) != 0) {
    throw UserError(ErrorKind::kData, {.error = "an adapter on a tied head cannot be merged",
                                       .where = options.adapter_dir,
                                       .what = "the head is the embedding, which has no adapter",
                                       .fix = "untie the base model (`tie_word_embeddings: false`) first"});
  }
  LoraOptions lora{.use_rslora = adapter.config.use_rslora};
  lora.rank = adapter.config.rank;
  lora.alpha = adapter.config.alpha;
  StagedDirectory staged(options.output_dir);
  MergedAdapter done{.base_dir = base_dir};
  rewrite_hf_weights(*base, staged.path(), [&](const std::string& name, const at::Tensor& stored) {
    at::Tensor tensor = options.dtype && at::isFloatingType(stored.scalar_type()) ? stored.to(*options.dtype) : stored;
    if (const auto saved = tensors.saved.find(name); saved != tensors.saved.end()) {
      ++done.num_replaced;
      return saved->second.to(tensor.scalar_type());
    }
    const auto layer = tensors.layers.find(module_of(name));
    if (layer == tensors.layers.end() || name != layer->first + ".weight") return tensor;
    ++done.num_layers;
    return merged_lora_weight(tensor, layer->second, lora.scaling());
  });
  write_config(base_dir, staged.path(), options.dtype);
  copy_companions(base_dir, staged.path(), {"config.json"});
  staged.commit();
  return done;
}

}  // namespace rematch
