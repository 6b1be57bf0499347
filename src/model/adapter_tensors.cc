#include "model/adapter_tensors.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "model/adapter_targets.h"

namespace rematch {
namespace {

using Shape = std::vector<int64_t>;

bool cut_suffix(const std::string& name, const std::string& suffix, std::string& rest) {
  if (name.size() <= suffix.size() || !name.ends_with(suffix)) return false;
  rest = name.substr(0, name.size() - suffix.size());
  return true;
}

class Sorter {
 public:
  Sorter(const PeftAdapter& adapter, const ModelDescription& model, const BaseShape& base_shape,
         const std::string& where)
      : adapter_(adapter), text_(model.text), base_shape_(base_shape), where_(where) {
    for (const LinearDescription& linear : model.linears()) linears_.insert(linear.module);
  }

  AdapterTensors sort() {
    if (adapter_.tensors.empty())
      fail("an adapter has no tensors", "adapter_model.safetensors is empty");
    for (const PeftTokens& tokens : adapter_.config.targets.trainable_tokens) expect_tokens(tokens);
    for (const TensorEntry& entry : adapter_.tensors) place(entry);
    for (const auto& [module, tensors] : sorted_.layers) require_complete(module, tensors);
    require_targeted();
    for (const std::string& module : adapter_.config.targets.target_modules) {
      if (linears_.contains(module) && !sorted_.layers.contains(module))
        fail(fmt::format("the adapter of {} is incomplete", module),
             "target_modules names it, and it has no tensors");
    }
    for (const auto& [module, tokens] : sorted_.token_rows) {
      if (!tokens.rows_KH.defined())
        fail("the adapter is incomplete", fmt::format("{}{} is missing", module, kTokenRows));
    }
    if (is_tied()) check_tied();
    return std::move(sorted_);
  }

 private:
  [[noreturn]] void fail(std::string error, std::string what, std::string fix = "") const {
    const std::string& base = adapter_.config.base_model;
    throw data_error(
        {.error = std::move(error),
         .where = where_,
         .what = std::move(what),
         .fix = !fix.empty() ? std::move(fix)
                : base.empty()
                    ? "use the base model that the adapter was trained on"
                    : fmt::format("use the base model that the adapter was trained on: it names {}",
                                  base)});
  }

  bool is_tied() const { return !base_shape_(head_name()).has_value(); }
  std::string embedding_name() const { return text_.embedding + ".weight"; }
  std::string head_name() const { return text_.head.module + ".weight"; }

  // PEFT finds a module by the end of its name. If tied, the embedding has the rows.
  void expect_tokens(const PeftTokens& tokens) {
    const std::string& name = tokens.module;
    const bool is_embedding = name.empty() || text_.embedding.ends_with(name);
    if (!is_embedding && !text_.head.module.ends_with(name)) {
      fail("an adapter trains rows of a module that is neither embedding nor head",
           "trainable_token_indices: " + name);
    }
    const std::set<int64_t> distinct(tokens.token_ids.begin(), tokens.token_ids.end());
    if (distinct.size() != tokens.token_ids.size() || distinct.empty() ||
        *distinct.rbegin() >= text_.vocab_size) {
      fail("the adapter's `trainable_token_indices` do not fit the base model",
           fmt::format("{} ids, {} of them distinct, {} rows", tokens.token_ids.size(),
                       distinct.size(), text_.vocab_size));
    }
    if (is_embedding || !is_tied()) {
      sorted_.token_rows[is_embedding ? text_.embedding : text_.head.module].token_ids =
          tokens.token_ids;
    } else {
      tied_head_ids_ = tokens.token_ids;
    }
  }

  // Removes the head's copies if they equal the embedding's; else the adapter unties the model.
  void check_tied() {
    const auto rows = sorted_.token_rows.find(text_.embedding);
    if (!tied_head_ids_.empty() &&
        (rows == sorted_.token_rows.end() || rows->second.token_ids != tied_head_ids_)) {
      fail("the adapter trains rows of a head that is also the embedding",
           "trainable_token_indices differ between the two");
    }
    const auto embedding = sorted_.saved.find(embedding_name()),
               head = sorted_.saved.find(head_name());
    const bool has_embedding = embedding != sorted_.saved.end(),
               has_head = head != sorted_.saved.end();
    if (!has_embedding && !has_head) return;
    const bool stays_tied =
        has_embedding && (has_head ? at::equal(embedding->second, head->second)
                                   : adapter_.config.targets.ensure_weight_tying);
    sorted_.unties = !stays_tied;
    if (stays_tied) sorted_.saved.erase(head_name());
  }

  /// Advice for names of another release of transformers, `model.layers.…` for
  /// `model.language_model.layers.…`; "" where the base model has no such layer.
  std::string renaming_fix(const std::string& module) const {
    const size_t layers = module.find("layers.");
    if (layers == std::string::npos) return "";
    const std::string tail = "." + module.substr(layers);
    for (const std::string& linear : linears_) {
      if (linear.ends_with(tail))
        return fmt::format(
            "the base model fits, and only the names differ: in the keys of "
            "adapter_model.safetensors write {} for {}",
            linear.substr(0, linear.size() - tail.size() + 1) + "layers",
            module.substr(0, layers) + "layers");
    }
    return "";
  }

  Shape linear_shape(const TensorEntry& entry, const std::string& module) const {
    const std::optional<Shape> shape = base_shape_(module + ".weight");
    if (!shape || linears_.count(module) == 0 || shape->size() != 2) {
      fail(fmt::format("the adapter's tensor {} matches no Linear layer of the base model",
                       entry.name),
           shape ? fmt::format("{} is not a Linear layer", module)
                 : fmt::format("the base model has no {}", module),
           shape ? "only Linear layers have an adapter here: merge it with PEFT "
                   "(`merge_and_unload`), and use the merged model"
                 : renaming_fix(module));
    }
    return *shape;
  }

  void require_shape(const TensorEntry& entry, const Shape& expected,
                     const std::string& reason) const {
    const Shape found = entry.tensor.sizes().vec();
    if (found != expected) {
      fail(fmt::format("the adapter's tensor {} has the wrong shape", entry.name),
           fmt::format("[{}] in the adapter, [{}] by {}", fmt::join(found, ", "),
                       fmt::join(expected, ", "), reason));
    }
    if (!at::isFloatingType(entry.tensor.scalar_type())) {
      fail(fmt::format("the adapter's tensor {} has the wrong dtype", entry.name),
           at::toString(entry.tensor.scalar_type()));
    }
  }

  void place(const TensorEntry& entry) {
    const int64_t rank = adapter_.config.rank;
    std::string module;
    if (cut_suffix(entry.name, ".lora_A.weight", module)) {
      require_shape(entry, {rank, linear_shape(entry, module)[1]},
                    fmt::format("r = {} and the base model", rank));
      sorted_.layers[module].a_rI = entry.tensor.to(at::kFloat);
    } else if (cut_suffix(entry.name, ".lora_B.weight", module)) {
      require_shape(entry, {linear_shape(entry, module)[0], rank},
                    fmt::format("r = {} and the base model", rank));
      sorted_.layers[module].b_Or = entry.tensor.to(at::kFloat);
    } else if (cut_suffix(entry.name, ".lora_magnitude_vector", module)) {
      require_shape(entry, {linear_shape(entry, module)[0]}, "the base model");
      sorted_.layers[module].magnitude_O = entry.tensor.to(at::kFloat);
    } else if (cut_suffix(entry.name, kTokenRows, module)) {
      place_rows(entry, module);
    } else {
      place_saved(entry);
    }
  }

  void place_rows(const TensorEntry& entry, const std::string& module) {
    const auto found = sorted_.token_rows.find(module);
    if (found == sorted_.token_rows.end()) {
      fail(fmt::format("the adapter's tensor {} is unknown", entry.name),
           "trainable_token_indices does not name its module");
    }
    require_shape(entry, {std::ssize(found->second.token_ids), text_.hidden_size},
                  "trainable_token_indices");
    found->second.rows_KH = entry.tensor.to(at::kFloat);
  }

  void place_saved(const TensorEntry& entry) {
    // A tied head is stored with the embedding, or trained separately.
    const bool is_tied_head = entry.name == head_name() && is_tied();
    const std::optional<Shape> shape = base_shape_(is_tied_head ? embedding_name() : entry.name);
    const Strings& saved = adapter_.config.targets.modules_to_save;
    // The parameter is inside a module with a name that ends with the entry.
    const auto covers = [&](const std::string& end) {
      for (size_t dot = entry.name.rfind('.'); dot != std::string::npos && dot > 0;
           dot = entry.name.rfind('.', dot - 1)) {
        if (std::string_view(entry.name).substr(0, dot).ends_with(end)) return true;
      }
      return false;
    };
    const bool is_copy = is_tied_head && adapter_.config.targets.ensure_weight_tying;
    if (!shape || (!is_copy && std::ranges::none_of(saved, covers))) {
      fail(fmt::format("the adapter's tensor {} is unknown", entry.name),
           shape
               ? "a parameter of the base model, but not in modules_to_save of adapter_config.json"
               : "neither a LoRA tensor nor a parameter of the base model");
    }
    require_shape(entry, *shape, "the base model");
    sorted_.saved[entry.name] = entry.tensor;
  }

  void require_complete(const std::string& module, const LoraTensors& tensors) const {
    const bool use_dora = adapter_.config.use_dora;
    const auto missing = [&](const char* tensor) {
      fail(fmt::format("the adapter of {} is incomplete", module),
           fmt::format("{} is missing", tensor));
    };
    if (!tensors.a_rI.defined()) missing("lora_A.weight");
    if (!tensors.b_Or.defined()) missing("lora_B.weight");
    if (use_dora && !tensors.magnitude_O.defined())
      missing("lora_magnitude_vector (use_dora is true)");
    if (!use_dora && tensors.magnitude_O.defined()) {
      fail(fmt::format("the adapter of {} has a magnitude", module),
           "lora_magnitude_vector belongs to DoRA, but use_dora is false");
    }
  }

  // PEFT loads such an adapter, and ignores these tensors.
  void require_targeted() const {
    Strings modules;
    for (const auto& [module, tensors] : sorted_.layers) modules.push_back(module);
    const std::string config = where_ + "/adapter_config.json";
    const std::string left_out = find_untargeted(adapter_.config.targets, modules, config);
    if (left_out.empty()) return;
    throw data_error(
        {.error = fmt::format("the adapter's tensor {}.lora_A.weight is not targeted", left_out),
         .where = config,
         .what = "target_modules and layers_to_transform leave its module out; PEFT "
                 "would ignore the tensor silently",
         .fix = "use the adapter_config.json that was saved with these tensors, or add "
                "the module to target_modules"});
  }

  const PeftAdapter& adapter_;
  const TextDescription& text_;
  std::set<std::string> linears_;
  const BaseShape& base_shape_;
  const std::string& where_;
  std::vector<int64_t> tied_head_ids_;
  AdapterTensors sorted_;
};

}  // namespace

AdapterTensors sort_adapter_tensors(const PeftAdapter& adapter, const ModelDescription& model,
                                    const BaseShape& base_shape, const std::string& where) {
  return Sorter(adapter, model, base_shape, where).sort();
}

}  // namespace rematch
