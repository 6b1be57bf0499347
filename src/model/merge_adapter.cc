#include "model/merge_adapter.h"

#include <fmt/core.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "model/adapter_base.h"
#include "model/adapter_targets.h"
#include "model/adapter_tensors.h"
#include "model/checkpoint/hf_dir.h"
#include "model/checkpoint/image_area.h"
#include "model/checkpoint/peft.h"
#include "model/checkpoint/quantisation.h"
#include "model/families/family.h"
#include "model/four_bit_reader.h"
#include "model/packed_linears.h"
#include "model/save.h"
#include "model/token_rows.h"

namespace rematch {
namespace {

std::string find_base(const MergeOptions& options, const PeftAdapter& adapter) {
  if (!options.base_dir.empty()) return options.base_dir;
  const std::string& named = adapter.config.base_model;
  if (!named.empty() && is_dir(named)) return named;
  throw config_error(
      {.error = "the adapter's base model cannot be found",
       .where = options.adapter_dir,
       .what = named.empty()
                   ? "adapter_config.json has no name of a base model"
                   : fmt::format("adapter_config.json names {}, which is not a directory", named),
       .fix = "add --model DIR, the base model's Hugging Face directory"});
}

void write_config(const std::string& base_dir, const std::string& output_dir,
                  const std::optional<at::ScalarType>& dtype, bool unties) {
  const std::string path = join_path(base_dir, "config.json");
  std::string text = config_without_quantisation(read_file(path), path);
  if (dtype) text = config_with_dtype(text, *dtype == at::kBFloat16 ? "bfloat16" : "float32", path);
  if (unties) {
    Json root = parse_json(text, path);
    untie_config(root);
    text = python_json(root, 2) + "\n";
  }
  write_file(join_path(output_dir, "config.json"), text);
}

/// Merges an adapter's tensors into those of its base model.
struct Merge {
  const MergeOptions& options;
  const HfDir& base;
  const ModelDescription& model;
  const AdapterTensors& tensors;
  LoraSettings lora;
  bool tied = false;
  MergedAdapter& done;

  std::string embedding() const { return model.text.embedding + ".weight"; }
  std::string head() const { return model.text.head.module + ".weight"; }

  // False for tensors that keep the dtype they are stored in.
  bool converts(const std::string& name, const at::Tensor& stored) const {
    const bool stays_wide =
        stored.scalar_type() == at::kFloat && model.float32_parameters().count(name) != 0;
    return options.dtype && at::isFloatingType(stored.scalar_type()) && !stays_wide &&
           !model.is_carried(name);
  }

  at::Tensor merge(const std::string& name, const at::Tensor& stored) const {
    const at::Tensor tensor = converts(name, stored) ? stored.to(*options.dtype) : stored;
    // The adapter has only one of two tied names.
    const bool is_tied_head = tied && !tensors.unties && name == head();
    const std::string known = is_tied_head ? embedding() : name;
    if (const auto saved = tensors.saved.find(known); saved != tensors.saved.end()) {
      ++done.num_replaced;
      return saved->second.to(tensor.scalar_type());
    }
    if (const auto rows = tensors.token_rows.find(module_of(known));
        rows != tensors.token_rows.end() && known.ends_with(".weight")) {
      done.num_rows = std::ssize(rows->second.token_ids);
      return TokenRows(rows->second.token_ids, rows->second.rows_KH, tensor.size(0)).merge(tensor);
    }
    const auto layer = tensors.layers.find(module_of(name));
    if (layer == tensors.layers.end() || name != layer->first + ".weight") return tensor;
    ++done.num_layers;
    return merge_lora(tensor, layer->second, lora.scaling());
  }

  // The matrix that an untied model stores in addition to the one of a tied model.
  std::vector<TensorEntry> new_entries() const {
    if (!tensors.unties || (base.has(embedding()) && base.has(head()))) return {};
    const bool has_embedding = base.has(embedding());
    const std::string missing = has_embedding ? head() : embedding();
    return {{missing, merge(missing, base.tensor(has_embedding ? embedding() : head()))}};
  }
};

// Sizes of every Linear's weight, by its name.
std::map<std::string, std::vector<int64_t>> linear_shapes(const ModelDescription& model) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const LinearDescription& linear : model.linears())
    shapes[linear.module + ".weight"] = {linear.num_outputs, linear.num_inputs};
  return shapes;
}

/// Reads the tensors of a base model; weights in 4 bits in full precision.
struct Base {
  const HfDir& dir;
  std::map<std::string, std::vector<int64_t>> shapes;
  at::ScalarType dtype;  ///< of weights stored in 4 bits: that of the embedding
  const std::optional<FourBitSettings>& packed;  ///< how training packed it while it was loaded
  std::string head;
  std::optional<at::ScalarType> wanted;  ///< dtype of the result; nullopt = as stored

  bool is_stored_packed(const std::string& name) const {
    return shapes.count(name) != 0 && is_four_bit(dir, name);
  }
  /// True for a weight that was in 4 bits when the adapter was trained.
  bool is_packed(const std::string& name) const {
    return is_stored_packed(name) ||
           (packed && shapes.count(name) != 0 && is_packed_at_load(*packed, head, module_of(name)));
  }
  std::vector<int64_t> shape(const std::string& name) const {
    return is_stored_packed(name) ? shapes.at(name) : dir.shape(name);
  }
  at::Tensor dequantised(const std::string& name, const at::Tensor& stored) const {
    const std::vector<int64_t>& shape = shapes.at(name);
    return is_stored_packed(name)
               ? read_four_bit(dir, name, shape[0], shape[1]).dequantised(dtype)
               : quantise(stored, *packed).dequantised(wanted.value_or(stored.scalar_type()));
  }
};

// MODEL 1, tie flag: two different stored matrices stay separate.
bool is_tied(const ModelDescription& model, const HfDir& base) {
  const std::string embedding = model.text.embedding + ".weight",
                    head = model.text.head.module + ".weight";
  if (!model.tie_word_embeddings) return false;
  return !base.has(head) || !base.has(embedding) ||
         at::equal(base.tensor(head), base.tensor(embedding));
}

}  // namespace

MergedAdapter merge_adapter(const MergeOptions& options) {
  require_empty_output(options.output_dir);
  const PeftAdapter adapter = read_peft_adapter(options.adapter_dir);
  const std::string base_dir = find_base(options, adapter);
  const std::string base_note = check_adapter_base({.adapter = adapter,
                                                    .adapter_dir = options.adapter_dir,
                                                    .base_dir = base_dir,
                                                    .force_base = options.force_base});
  const ModelDescription model = describe_model(base_dir);
  const auto base = HfDir::open(base_dir, model.file_names);
  stored_quantisation(base_dir);  // refuses those that cannot be read
  const bool tied = is_tied(model, *base);
  const std::string head_name = model.text.head.module + ".weight",
                    embedding_name = model.text.embedding + ".weight";
  const Base full{*base,
                  linear_shapes(model),
                  base->dtype(base->has(embedding_name) ? embedding_name : head_name),
                  adapter.config.base.packed,
                  model.text.head.module,
                  options.dtype};
  const auto get_shape = [&](const std::string& name) -> std::optional<std::vector<int64_t>> {
    if (tied && name == head_name) return std::nullopt;
    if (tied && name == embedding_name && !base->has(name)) return base->shape(head_name);
    if (!base->has(name)) return std::nullopt;
    return full.shape(name);
  };
  const AdapterTensors tensors =
      sort_adapter_tensors(adapter, model, get_shape, options.adapter_dir);
  if (tied && tensors.layers.count(model.text.head.module) != 0) {
    throw data_error({.error = "an adapter on a tied head cannot be merged",
                      .where = options.adapter_dir,
                      .what = "the head is the embedding, which cannot have an adapter",
                      .fix = "untie the base model (`tie_word_embeddings: false`) first"});
  }
  const LoraSettings lora{.rank = adapter.config.rank, .alpha = adapter.config.alpha};
  StagedDirectory staged(options.output_dir);
  MergedAdapter done{.base_dir = base_dir,
                     .untied = tensors.unties,
                     .base_note = base_note,
                     .packed_at_load = adapter.config.base.packed.has_value()};
  const Merge merger{options, *base, model, tensors, lora, tied, done};
  rewrite_hf_weights(
      *base, staged.path(),
      [&](const std::string& name, const at::Tensor& stored) {
        if (is_four_bit_state(name)) return at::Tensor();
        if (!full.is_packed(name)) return merger.merge(name, stored);
        ++done.num_dequantised;
        return merger.merge(name, full.dequantised(name, stored));
      },
      merger.new_entries());
  write_config(base_dir, staged.path(), options.dtype, tensors.unties);
  copy_companions(base_dir, staged.path(), {"config.json"});
  copy_image_area(options.adapter_dir, staged.path());
  staged.commit();
  return done;
}

}  // namespace rematch
