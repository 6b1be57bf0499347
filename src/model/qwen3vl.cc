#include "model/qwen3vl.h"

#include <fmt/core.h>

#include <numeric>
#include <unordered_map>

#include "base/error.h"
#include "model/decoder.h"
#include "model/parameter_loader.h"
#include "model/positions.h"
#include "model/vision_tower.h"

namespace rematch {
namespace {

constexpr const char* kEmbedding = "model.language_model.embed_tokens.weight";
constexpr const char* kHead = "lm_head.weight";

enum class HeadSource {
  kOwn,        ///< lm_head.weight is a parameter of its own
  kTied,       ///< the embedding; a redundant copy is ignored
  kEmbedsToo,  ///< tied, and only the head is stored
};

// MODEL 1, tie flag: two stored matrices that differ are kept apart whatever the flag says.
HeadSource head_source(const HfDir& dir, bool tie_flag) {
  if (!tie_flag || !dir.has(kHead)) return tie_flag ? HeadSource::kTied : HeadSource::kOwn;
  if (!dir.has(kEmbedding)) return HeadSource::kEmbedsToo;
  const at::Tensor embedding = dir.tensor(kEmbedding), head = dir.tensor(kHead);
  const bool same = embedding.sizes() == head.sizes() && at::equal(embedding, head.to(embedding.scalar_type()));
  return same ? HeadSource::kTied : HeadSource::kOwn;
}

void require_ids(const std::vector<int64_t>& token_ids, int64_t vocab_size) {
  for (size_t i = 0; i < token_ids.size(); ++i) {
    if (token_ids[i] >= 0 && token_ids[i] < vocab_size) continue;
    throw UserError(ErrorKind::kData, {.error = "a token id is outside the model's vocabulary",
                                       .where = fmt::format("token {}", i),
                                       .what = fmt::format("{}, the embedding has {} rows", token_ids[i], vocab_size),
                                       .fix = "use the tokenizer.json of the model's own directory"});
  }
}

void require_vision_input(const VisionInput& images, const VisionConfig& config) {
  const auto fail = [](std::string what) {
    throw UserError(ErrorKind::kData, {.error = "image rows do not fit the model",
                                       .where = "pixel_values",
                                       .what = std::move(what),
                                       .fix = "make patches with the preprocessor_config.json of the model's own directory"});
  };
  int64_t num_rows = 0;
  for (const auto& [t, h, w] : images.grid_thw) {
    if (t < 1 || h < 1 || w < 1 || h % config.spatial_merge_size != 0 || w % config.spatial_merge_size != 0) {
      fail(fmt::format("grid {}x{}x{}, merge {}", t, h, w, config.spatial_merge_size));
    }
    num_rows += t * h * w;
  }
  const int64_t width = config.in_channels * config.temporal_patch_size * config.patch_size * config.patch_size;
  const at::Tensor& pixels = images.pixel_values_NC;
  if (!pixels.defined() || pixels.dim() != 2 || pixels.size(0) != num_rows || pixels.size(1) != width) {
    fail(fmt::format("{} for {} rows of {} values", pixels.defined() ? c10::str(pixels.sizes()) : "nothing", num_rows, width));
  }
}

}  // namespace

struct Qwen3VL::Impl {
  Impl(const Qwen3VLConfig& model_config, const ModelOptions& model_options, ParameterLoader& loader)
      : config(model_config), options(model_options), tower(config.vision, source(loader)) {
    const HeadSource head_from = head_source(loader.dir(), config.tie_word_embeddings);
    const std::vector<int64_t> shape{config.text.vocab_size, config.text.hidden_size};
    embedding = loader.take_as(head_from == HeadSource::kEmbedsToo ? kHead : kEmbedding, kEmbedding, shape);
    decoder = std::make_unique<Decoder>(config.text, source(loader));
    tower.set_gradient_checkpointing(options.gradient_checkpointing);
    decoder->set_gradient_checkpointing(options.gradient_checkpointing);
    tied = head_from != HeadSource::kOwn;
    head.weight = tied ? embedding : loader.take(kHead, shape);
    if (tied && loader.dir().has(kHead)) loader.skip(kHead);
    unused = loader.unused();
    parameters = loader.take_parameters();
    for (size_t i = 0; i < parameters.size(); ++i) index[parameters[i].name] = i;
  }

  static TensorSource source(ParameterLoader& loader) {
    return [&loader](const std::string& name, const std::vector<int64_t>& shape) { return loader.take(name, shape); };
  }

  void visit_linears(const LinearVisitor& visit) {
    tower.visit_linears(visit);
    decoder->visit_linears(visit);
    if (!tied) visit("lm_head", head);
  }

  Qwen3VLConfig config;
  ModelOptions options;
  VisionTower tower;
  at::Tensor embedding;
  std::unique_ptr<Decoder> decoder;
  LinearWeights head;
  std::shared_ptr<Adapter> adapter;
  bool tied = false;
  std::vector<NamedParameter> parameters;
  std::unordered_map<std::string, size_t> index;
  std::vector<std::string> unused;
};

Qwen3VL::Qwen3VL() = default;

std::shared_ptr<Qwen3VL> Qwen3VL::load(const std::string& model_dir, const ModelOptions& options) {
  REMATCH_CHECK(options.dtype == at::kFloat || options.dtype == at::kBFloat16, at::toString(options.dtype));
  const at::NoGradGuard no_grad;
  const Qwen3VLConfig config = Qwen3VLConfig::from_model_dir(model_dir);
  ParameterLoader loader(HfDir::open(model_dir), options);
  std::shared_ptr<Qwen3VL> model(new Qwen3VL);
  model->impl_ = std::make_unique<Impl>(config, options, loader);
  return model;
}

const Qwen3VLConfig& Qwen3VL::config() const { return impl_->config; }
at::ScalarType Qwen3VL::dtype() const { return impl_->options.dtype; }
at::Device Qwen3VL::device() const { return impl_->options.device; }
const std::shared_ptr<Adapter>& Qwen3VL::adapter() const { return impl_->adapter; }

std::vector<std::pair<std::string, LinearWeights>> Qwen3VL::linears() const {
  std::vector<std::pair<std::string, LinearWeights>> linears;
  impl_->visit_linears([&](const std::string& module, LinearWeights& layer) { linears.emplace_back(module, layer); });
  return linears;
}

void Qwen3VL::attach(std::shared_ptr<Adapter> adapter, const std::map<std::string, std::shared_ptr<const LinearAdapter>>& layers) {
  size_t num_attached = 0;
  impl_->visit_linears([&](const std::string& module, LinearWeights& layer) {
    const auto found = layers.find(module);
    layer.adapter = found == layers.end() ? nullptr : found->second;
    num_attached += found == layers.end() ? 0 : 1;
  });
  REMATCH_CHECK(num_attached == layers.size(), fmt::format("{} layers, {} of them in the model", layers.size(), num_attached));
  impl_->adapter = std::move(adapter);
}
bool Qwen3VL::tied() const { return impl_->tied; }
const std::vector<NamedParameter>& Qwen3VL::parameters() const { return impl_->parameters; }
const std::vector<std::string>& Qwen3VL::unused_tensors() const { return impl_->unused; }

at::Tensor Qwen3VL::parameter(const std::string& name) const {
  const auto found = impl_->index.find(name);
  return found == impl_->index.end() ? at::Tensor() : impl_->parameters[found->second].tensor;
}

VisionFeatures Qwen3VL::encode_images(const VisionInput& images) const {
  if (images.grid_thw.empty()) return {};
  require_vision_input(images, impl_->config.vision);
  VisionTowerOutput output = impl_->tower.forward(images.pixel_values_NC.to(device()), images.grid_thw);
  return {std::move(output.embeds_MH), std::move(output.deepstack_MH)};
}

at::Tensor Qwen3VL::positions_3T(const RowInput& row) const {
  REMATCH_CHECK(row.grids.size() == row.segment_lens.size() || row.grids.empty(),
                fmt::format("{} grids, {} segments", row.grids.size(), row.segment_lens.size()));
  const PositionOptions options{.image_token_id = impl_->config.image_token_id, .merge_size = impl_->config.vision.spatial_merge_size};
  const auto num_tokens = static_cast<int64_t>(row.token_ids.size());
  at::Tensor positions = at::empty({3, num_tokens}, at::TensorOptions().dtype(at::kLong));
  int64_t begin = 0;
  for (size_t s = 0; s < row.segment_lens.size(); ++s) {
    const int64_t end = begin + row.segment_lens[s];
    REMATCH_CHECK(end <= num_tokens, fmt::format("segments end at {} of {}", end, num_tokens));
    const std::vector<int64_t> token_ids(row.token_ids.begin() + begin, row.token_ids.begin() + end);
    static const std::vector<std::array<int64_t, 3>> kNoGrids;
    const Positions segment = position_ids(token_ids, row.grids.empty() ? kNoGrids : row.grids[s], options, fmt::format("segment {}", s));
    for (size_t axis = 0; axis < 3; ++axis) {
      std::copy(segment.rows[axis].begin(), segment.rows[axis].end(),
                positions.data_ptr<int64_t>() + static_cast<int64_t>(axis) * num_tokens + begin);
    }
    begin = end;
  }
  REMATCH_CHECK(begin == num_tokens, fmt::format("segments take {} of {}", begin, num_tokens));
  return positions;
}

at::Tensor Qwen3VL::forward_TH(const RowInput& row, const VisionFeatures& features) const {
  require_ids(row.token_ids, impl_->config.text.vocab_size);
  const at::Tensor positions = positions_3T(row);
  const auto index_options = at::TensorOptions().dtype(at::kLong);
  std::vector<int64_t> visual;
  for (size_t i = 0; i < row.token_ids.size(); ++i) {
    if (row.token_ids[i] == impl_->config.image_token_id) visual.push_back(static_cast<int64_t>(i));
  }
  const int64_t num_visual = features.embeds_MH.defined() ? features.embeds_MH.size(0) : 0;
  REMATCH_CHECK(num_visual == static_cast<int64_t>(visual.size()), fmt::format("{} visual tokens for {} pads", num_visual, visual.size()));
  at::Tensor embeds = embed(at::tensor(row.token_ids, index_options));
  at::Tensor visual_idx;
  if (num_visual > 0) {
    visual_idx = at::tensor(visual, index_options).to(device());
    embeds = embeds.index_copy(0, visual_idx, features.embeds_MH.to(embeds.scalar_type()));
  }
  VarlenCausalAttention attention(row.segment_lens);
  return decode_TH(embeds, positions, attention, visual_idx, features.deepstack_MH);
}

at::Tensor Qwen3VL::decode_TH(const at::Tensor& embeds_TH, const at::Tensor& positions_3T, AttentionContext& attention,
                              const at::Tensor& visual_idx_M, const std::vector<at::Tensor>& deepstack_MH) const {
  return impl_->decoder->forward(embeds_TH, positions_3T, attention, {visual_idx_M, deepstack_MH});
}

at::Tensor Qwen3VL::embed(const at::Tensor& token_ids) const {
  return at::embedding(impl_->embedding, token_ids.to(device()), impl_->config.text.pad_token_id);
}

const LinearWeights& Qwen3VL::head() const { return impl_->head; }

at::Tensor Qwen3VL::head_KV(const at::Tensor& hidden_KH) const { return linear(hidden_KH, impl_->head); }

}  // namespace rematch
