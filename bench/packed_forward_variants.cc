#include "packed_forward_variants.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "mstep/mstep.h"

namespace rematch::bench {
namespace {

double backward_of(const Job& job, const at::Tensor& hidden_TH, const RowSupervision& supervision,
                   const LossScale& scale) {
  const RowLoss loss =
      row_loss(hidden_TH, supervision, Head::of(job.model->head()), job.loss, scale);
  torch::autograd::backward({loss.total}, {});
  double total = 0;
  for (const auto& [kind, sum] : loss.by_kind) total += sum.sum * get_scale(scale, kind);
  return total;
}

// Attention of a right-padded batch. q [B, T, nq, D].
class PaddedContext : public AttentionContext {
 public:
  /// @param mask  [B, 1, T, T] bool, true where a query may look; undefined = causal
  explicit PaddedContext(at::Tensor mask) : mask_(std::move(mask)) {}
  at::Tensor attend(int64_t, const at::Tensor& q, const at::Tensor& k,
                    const at::Tensor& v) override {
    const std::optional<at::Tensor> mask = mask_.defined() ? std::optional(mask_) : std::nullopt;
    const bool has_grouped_heads = q.size(2) != k.size(2);
    return at::scaled_dot_product_attention(
               q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), mask, /*dropout_p=*/0.0,
               /*is_causal=*/!mask_.defined(), /*scale=*/std::nullopt, has_grouped_heads)
        .transpose(1, 2);
  }

 private:
  at::Tensor mask_;
};

// A batch of segments padded on the right.
struct PaddedBatch {
  at::Tensor token_ids_BT, positions_3BT, visual_idx_M;
  VisionInput images;
  RowSupervision supervision;  ///< positions in the flattened [B·T]
  int64_t width = 0;
  std::vector<int64_t> lens;

  at::Tensor mask() const {
    const at::Tensor steps = at::arange(width),
                     is_real_BT = steps.unsqueeze(0) < at::tensor(lens).unsqueeze(1);
    return is_real_BT.unsqueeze(1).unsqueeze(1).logical_and(
        at::ones({width, width}, at::kBool).tril());
  }
};

void add_supervision(RowSupervision& all, const std::shared_ptr<const Segment>& segment,
                     int64_t begin) {
  for (const auto& [kind, one] : RowSupervision::from({{segment}}).by_kind) {
    KindTargets& targets = all.by_kind[kind];
    for (const int64_t position : one.positions) targets.positions.push_back(begin + position);
    targets.values.insert(targets.values.end(), one.values.begin(), one.values.end());
    targets.is_prefix.insert(targets.is_prefix.end(), one.is_prefix.begin(), one.is_prefix.end());
  }
}

PaddedBatch make_padded(const Job& job) {
  PaddedBatch batch;
  const RowBatch row = make_row({job.segments}, job.pixels);
  batch.lens = row.input.segment_lens;
  batch.images = row.images;
  batch.width = *std::max_element(batch.lens.begin(), batch.lens.end());
  const auto size = static_cast<int64_t>(batch.lens.size());
  const at::Tensor token_ids_T = at::tensor(row.input.token_ids, at::kLong),
                   positions_3T = job.model->positions_3T(row.input);
  batch.token_ids_BT = at::zeros({size, batch.width}, at::kLong);
  batch.positions_3BT = at::zeros({3, size, batch.width}, at::kLong);
  int64_t begin = 0;
  for (int64_t b = 0; b < size; ++b) {
    const int64_t len = batch.lens[static_cast<size_t>(b)];
    batch.token_ids_BT.select(0, b).narrow(0, 0, len).copy_(token_ids_T.narrow(0, begin, len));
    batch.positions_3BT.select(1, b).narrow(1, 0, len).copy_(positions_3T.narrow(1, begin, len));
    add_supervision(batch.supervision, job.segments[static_cast<size_t>(b)], b * batch.width);
    begin += len;
  }
  const at::Tensor visual =
      batch.token_ids_BT.flatten().eq(job.model->description().image_token_id).nonzero().flatten();
  if (visual.numel() > 0) batch.visual_idx_M = visual;
  return batch;
}

at::Tensor padded_hidden(const Job& job, const PaddedBatch& batch, PaddedAttention attention) {
  const VisionFeatures features = job.model->encode_images(batch.images);
  at::Tensor embeds = job.model->embed(batch.token_ids_BT);
  if (batch.visual_idx_M.defined()) {
    embeds = embeds.flatten(0, 1)
                 .index_copy(0, batch.visual_idx_M, features.embeds_MH.to(embeds.scalar_type()))
                 .view(embeds.sizes());
  }
  PaddedContext context(attention == PaddedAttention::kMask ? batch.mask() : at::Tensor());
  return job.model
      ->decode_TH(embeds, batch.positions_3BT, context, batch.visual_idx_M, features.deepstack_MH)
      .flatten(0, 1);
}

}  // namespace

Variant rows_variant(const Job& job, std::string name, std::vector<PackedRow> rows) {
  int64_t num_positions = 0;
  for (const PackedRow& row : rows) num_positions += row.total_len();
  const auto run = [&job, rows = std::move(rows)] {
    std::vector<RowSupervision> supervision;
    for (const PackedRow& row : rows) supervision.push_back(RowSupervision::from(row));
    const std::vector<LossScale> scales = loss_scales(supervision, LossNormalization::kWindow);
    double loss = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      loss += backward_of(job, forward_row(*job.model, make_row(rows[i], job.pixels)),
                          supervision[i], scales[i]);
    }
    return loss;
  };
  return {std::move(name), run, num_positions};
}

Variant padded_variant(const Job& job, std::string name, PaddedAttention attention) {
  const auto run = [&job, attention] {
    const PaddedBatch batch = make_padded(job);
    const LossScale scale = loss_scales({batch.supervision}, LossNormalization::kWindow).front();
    return backward_of(job, padded_hidden(job, batch, attention), batch.supervision, scale);
  };
  int64_t width = 0;
  for (const auto& segment : job.segments) width = std::max<int64_t>(width, segment->encoded_len());
  return {std::move(name), run, width * static_cast<int64_t>(job.segments.size())};
}

}  // namespace rematch::bench
