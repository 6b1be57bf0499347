#include "model/model.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
#include "model/checkpoint/quantisation.h"
#include "model/decoder.h"
#include "model/families/family.h"
#include "model/nn/upload.h"
#include "model/packed_linears.h"
#include "model/parameter_loader.h"
#include "model/pixel_levels.h"
#include "model/positions.h"
#include "model/shared_table.h"
#include "model/supported.h"
#include "model/token_rows.h"
#include "model/vision_tower.h"

namespace rematch {
namespace {

enum class HeadSource {
  kSeparate,  ///< lm_head.weight is a separate parameter
  kTied,      ///< the embedding; a redundant copy is ignored
  kOnlyHead,  ///< tied, and only the head is stored
};

// MODEL 1, tie flag: two different stored matrices stay separate even with the flag.
HeadSource head_source(const HfDir* dir, bool tie_flag, const std::string& embedding_name,
                       const std::string& head_name) {
  if (!tie_flag || dir == nullptr || !dir->has(head_name))
    return tie_flag ? HeadSource::kTied : HeadSource::kSeparate;
  if (!dir->has(embedding_name)) return HeadSource::kOnlyHead;
  const at::Tensor embedding = dir->tensor(embedding_name), head = dir->tensor(head_name);
  const bool same =
      embedding.sizes() == head.sizes() && at::equal(embedding, head.to(embedding.scalar_type()));
  return same ? HeadSource::kTied : HeadSource::kSeparate;
}

void require_ids(const std::vector<int64_t>& token_ids, int64_t vocab_size) {
  for (size_t i = 0; i < token_ids.size(); ++i) {
    if (token_ids[i] >= 0 && token_ids[i] < vocab_size) continue;
    throw data_error(
        {.error = "a token id is outside the model's vocabulary",
         .where = fmt::format("token {}", i),
         .what = fmt::format("{}, the embedding has {} rows", token_ids[i], vocab_size),
         .fix = "use the tokenizer.json of the model directory"});
  }
}

void require_vision_input(const VisionInput& images, const VisionDescription& vision) {
  const auto fail = [](std::string what) {
    throw data_error(
        {.error = "image patches do not match the model",
         .where = "pixel_values",
         .what = std::move(what),
         .fix = "make patches with the preprocessor_config.json of the model directory"});
  };
  int64_t num_rows = 0;
  for (const auto& [t, h, w] : images.grid_thw) {
    if (t < 1 || h < 1 || w < 1 || h % vision.spatial_merge_size != 0 ||
        w % vision.spatial_merge_size != 0) {
      fail(fmt::format("grid {}x{}x{}, merge {}", t, h, w, vision.spatial_merge_size));
    }
    num_rows += t * h * w;
  }
  const bool is_levels = images.level_values_C256.defined();
  const int64_t width = vision.patch_width() / (is_levels ? vision.temporal_patch_size : 1);
  const at::Tensor& pixels = images.pixel_values_NC;
  if (!pixels.defined() || pixels.dim() != 2 || pixels.size(0) != num_rows ||
      pixels.size(1) != width) {
    fail(fmt::format("{} for {} rows of {} values",
                     pixels.defined() ? c10::str(pixels.sizes()) : "nothing", num_rows, width));
  }
}

}  // namespace

struct Model::Impl {
  /// @param source  reads from the loader
  Impl(ModelDescription model_description, const ModelOptions& model_options,
       ParameterLoader& loader, LayerSource& source)
      : description(std::move(model_description)),
        options(model_options),
        tower(description.vision, source) {
    const TextDescription& text = description.text;
    const std::string embedding_name = text.embedding + ".weight",
                      head_name = text.head.module + ".weight";
    const HeadSource head_from =
        head_source(loader.dir(), description.tie_word_embeddings, embedding_name, head_name);
    const std::vector<int64_t> shape{text.vocab_size, text.hidden_size};
    embedding = loader.take_as(head_from == HeadSource::kOnlyHead ? head_name : embedding_name,
                               embedding_name, shape);
    decoder = std::make_unique<Decoder>(text, source);
    tower.set_gradient_checkpointing(options.gradient_checkpointing != Checkpointing::kOff);
    decoder->set_gradient_checkpointing(options.gradient_checkpointing);
    tied = head_from != HeadSource::kSeparate;
    if (tied) {
      head.weight = embedding;
    } else {
      source.fill(head, text.head);
    }
    linears = source.linears();
    if (tied && loader.dir() != nullptr && loader.dir()->has(head_name)) loader.skip(head_name);
    unused = loader.unused_names();
    std::erase_if(unused, [&](const std::string& name) { return description.is_carried(name); });
    parameters = loader.take_parameters();
    for (size_t i = 0; i < parameters.size(); ++i) index[parameters[i].name] = i;
  }

  /// Gives a frozen table to the blocks, if there are such.
  /// @return  NamedParameter::need
  std::function<void()> share(const std::string& module) {
    NamedParameter& table = parameters[index.at(module + ".weight")];
    if (options.blocks && !table.tensor.requires_grad()) share_table(table, options.blocks);
    return table.need;
  }
  /// The same for embedding and head, but for those with an adapter or trained rows.
  void share_tables() {
    if (!embedding_rows) need_embedding = share(description.text.embedding);
    if (head.adapter) return;
    const auto need = tied ? need_embedding : share(description.text.head.module);
    if (need) head.adapter = std::make_shared<const SharedHead>(need);
  }

  ModelDescription description;
  ModelOptions options;
  VisionTower tower;
  at::Tensor embedding;
  std::function<void()> need_embedding;             // empty = it is in memory
  std::shared_ptr<const TokenRows> embedding_rows;  // of the adapter
  std::unique_ptr<Decoder> decoder;
  LinearWeights head;
  std::vector<std::pair<std::string, LinearWeights*>> linears;
  std::shared_ptr<Adapter> adapter;
  bool tied = false;
  std::vector<NamedParameter> parameters;
  std::unordered_map<std::string, size_t> index;
  Strings unused;
};

Model::Model() = default;

std::shared_ptr<Model> Model::load(const std::string& model_dir, const ModelOptions& options) {
  REMATCH_CHECK(options.dtype == at::kFloat || options.dtype == at::kBFloat16,
                at::toString(options.dtype));
  ModelDescription description = describe_model(model_dir);
  require_supported(description, join_path(model_dir, "config.json"));
  if (stored_quantisation(model_dir) && options.four_bit) {
    throw config_error({.error = "the model is quantised already",
                        .where = "model.load_in_4bit",
                        .what = model_dir + " has a quantization_config",
                        .fix = "remove `model.load_in_4bit` and the `bnb_4bit_*` keys"});
  }
  auto dir = HfDir::open(model_dir, description.file_names);
  return make(std::move(description), std::move(dir), options);
}

std::shared_ptr<Model> Model::without_weights(ModelDescription description,
                                              const ModelOptions& options) {
  REMATCH_CHECK(options.device.is_meta(), options.device.str());
  return make(std::move(description), nullptr, options);
}

std::shared_ptr<Model> Model::make(ModelDescription description, std::shared_ptr<const HfDir> dir,
                                   const ModelOptions& options) {
  const at::NoGradGuard no_grad;
  if (options.four_bit) check_skip_modules(*options.four_bit, description);
  ParameterLoader loader(std::move(dir), options, description.float32_parameters(),
                         description.text.head.module);
  LayerSource source(
      [&loader](const std::string& name, const std::vector<int64_t>& shape) {
        return loader.take(name, shape);
      },
      [&loader](LinearWeights& layer, const LinearDescription& linear) {
        loader.take_weight(layer, linear);
      },
      [&loader](const std::function<void()>& fill) { return loader.take_block(fill); });
  std::shared_ptr<Model> model(new Model);
  model->impl_ = std::make_unique<Impl>(std::move(description), options, loader, source);
  return model;
}

const ModelDescription& Model::description() const { return impl_->description; }
at::ScalarType Model::dtype() const { return impl_->options.dtype; }
at::Device Model::device() const { return impl_->options.device; }
const std::shared_ptr<BlockWeights>& Model::blocks() const { return impl_->options.blocks; }
const std::shared_ptr<Adapter>& Model::adapter() const { return impl_->adapter; }

std::vector<std::pair<std::string, LinearWeights>> Model::linears() const {
  std::vector<std::pair<std::string, LinearWeights>> linears;
  for (const auto& [module, layer] : impl_->linears) linears.emplace_back(module, *layer);
  return linears;
}

void Model::attach(std::shared_ptr<Adapter> adapter,
                   const std::map<std::string, std::shared_ptr<const LinearAdapter>>& layers,
                   std::shared_ptr<const TokenRows> embedding_rows) {
  size_t num_attached = 0;
  for (const auto& [module, layer] : impl_->linears) {
    const auto found = layers.find(module);
    layer->adapter = found == layers.end() ? nullptr : found->second;
    num_attached += found == layers.end() ? 0 : 1;
  }
  REMATCH_CHECK(num_attached == layers.size(),
                fmt::format("{} layers, {} of them in the model", layers.size(), num_attached));
  if (impl_->tied) impl_->head.adapter = embedding_rows;
  impl_->embedding_rows = std::move(embedding_rows);
  impl_->adapter = std::move(adapter);
  impl_->share_tables();
}
bool Model::tied() const { return impl_->tied; }
const std::vector<NamedParameter>& Model::parameters() const { return impl_->parameters; }
const Strings& Model::unused_tensors() const { return impl_->unused; }

at::Tensor Model::parameter(const std::string& name) const {
  const NamedParameter* found = find_parameter(name);
  return found == nullptr ? at::Tensor() : found->tensor;
}

const NamedParameter* Model::find_parameter(const std::string& name) const {
  const auto found = impl_->index.find(name);
  return found == impl_->index.end() ? nullptr : &impl_->parameters[found->second];
}

int64_t Model::num_packed() const {
  return std::ranges::count_if(impl_->parameters, [](const NamedParameter& parameter) {
    return parameter.packed != nullptr;
  });
}

VisionFeatures Model::encode_images(const VisionInput& images) const {
  if (images.grid_thw.empty()) return {};
  require_vision_input(images, impl_->description.vision);
  at::Tensor pixels_NC = upload(images.pixel_values_NC, device());
  if (images.level_values_C256.defined()) {
    pixels_NC = values_of_levels(pixels_NC, upload(images.level_values_C256, device()),
                                 impl_->description.vision.temporal_patch_size);
  }
  return impl_->tower.forward(pixels_NC, images.grid_thw);
}

at::Tensor Model::positions_3T(const RowInput& row) const {
  REMATCH_CHECK(row.grids.size() == row.segment_lens.size() || row.grids.empty(),
                fmt::format("{} grids, {} segments", row.grids.size(), row.segment_lens.size()));
  const PositionOptions options{.image_token_id = impl_->description.image_token_id,
                                .merge_size = impl_->description.vision.spatial_merge_size};
  const auto num_tokens = std::ssize(row.token_ids);
  at::Tensor positions = at::empty({3, num_tokens}, at::TensorOptions().dtype(at::kLong));
  int64_t begin = 0;
  for (size_t s = 0; s < row.segment_lens.size(); ++s) {
    const int64_t end = begin + row.segment_lens[s];
    REMATCH_CHECK(end <= num_tokens, fmt::format("segments end at {} of {}", end, num_tokens));
    const std::vector<int64_t> token_ids(row.token_ids.begin() + begin,
                                         row.token_ids.begin() + end);
    static const std::vector<GridThw> kNoGrids;
    const Positions segment = position_ids(token_ids, row.grids.empty() ? kNoGrids : row.grids[s],
                                           options, fmt::format("segment {}", s));
    for (size_t axis = 0; axis < 3; ++axis) {
      std::ranges::copy(segment.axes[axis], positions.data_ptr<int64_t>() +
                                                static_cast<int64_t>(axis) * num_tokens + begin);
    }
    begin = end;
  }
  REMATCH_CHECK(begin == num_tokens, fmt::format("segments take {} of {}", begin, num_tokens));
  return positions;
}

at::Tensor Model::forward_TH(const RowInput& row, const VisionFeatures& features) const {
  require_ids(row.token_ids, impl_->description.text.vocab_size);
  const at::Tensor positions = positions_3T(row);
  std::vector<int64_t> visual;
  for (size_t i = 0; i < row.token_ids.size(); ++i) {
    if (row.token_ids[i] == impl_->description.image_token_id)
      visual.push_back(static_cast<int64_t>(i));
  }
  const int64_t num_visual = features.embeds_MH.defined() ? features.embeds_MH.size(0) : 0;
  REMATCH_CHECK(num_visual == std::ssize(visual),
                fmt::format("{} visual tokens for {} pads", num_visual, visual.size()));
  at::Tensor embeds = embed(at::tensor(row.token_ids, at::kLong));
  at::Tensor visual_idx;
  if (num_visual > 0) {
    visual_idx = upload_index(visual, device());
    embeds = embeds.index_copy(0, visual_idx, features.embeds_MH.to(embeds.scalar_type()));
  }
  VarlenCausalAttention attention(row.segment_lens);
  return decode_TH(embeds, positions, attention, visual_idx, features.deepstack_MH);
}

at::Tensor Model::decode_TH(const at::Tensor& embeds_TH, const at::Tensor& positions_3T,
                            AttentionContext& attention, const at::Tensor& visual_idx_M,
                            const std::vector<at::Tensor>& deepstack_MH) const {
  return impl_->decoder->forward(embeds_TH, positions_3T, attention, {visual_idx_M, deepstack_MH});
}

at::Tensor Model::embed(const at::Tensor& token_ids) const {
  const int64_t pad = impl_->description.text.pad_token_id;
  if (impl_->need_embedding) impl_->need_embedding();
  if (impl_->embedding_rows)
    return impl_->embedding_rows->embed(impl_->embedding, upload(token_ids, device()), pad);
  return at::embedding(impl_->embedding, upload(token_ids, device()), pad);
}

at::Tensor Model::head_KV(const at::Tensor& hidden_KH) const {
  return linear(hidden_KH, impl_->head);
}

const LinearWeights& Model::head() const { return impl_->head; }

}  // namespace rematch
