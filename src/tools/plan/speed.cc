#include "tools/plan/speed.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "learn/mstep/loss/loss_term.h"

namespace rematch {
namespace {

// Shares of a card's peaks that kernels reach, as their authors report; no number of ours.
constexpr double kProductShare = 0.70, kAttentionShare = 0.40, kBandwidthShare = 0.80;
constexpr double kLaunchSeconds = 5e-6;
constexpr double kBackward = 2;  // operations of a backward pass by those of a forward pass
constexpr double kAttentionBackward = 2.5;

const Card kCards[] = {{"A100", 312e12, 2039e9}, {"H100", 989e12, 3350e9},
                       {"H200", 989e12, 4800e9}, {"B200", 2250e12, 8e12},
                       {"L40S", 362e12, 864e9},  {"L4", 121e12, 300e9},
                       {"A10", 125e12, 600e9},   {"RTX4090", 165e12, 1008e9}};

double of(int64_t value) { return static_cast<double>(value); }

// A product of a Linear over `rows` rows.
struct Product {
  double rows = 0, inputs = 0, outputs = 0;

  double flops() const { return 2 * rows * inputs * outputs; }
  double bytes(double value_bytes) const {
    return value_bytes * (rows * (inputs + outputs) + inputs * outputs);
  }
};

/// The Linears of a decoder layer.
std::vector<LinearDescription> layer_linears(const LayerDescription& layer) {
  std::vector<LinearDescription> linears = layer.mixer_linears();
  if (layer.mlp.gate) linears.push_back(*layer.mlp.gate);
  linears.push_back(layer.mlp.up);
  linears.push_back(layer.mlp.down);
  return linears;
}

class Row {
 public:
  explicit Row(const PlanRequest& request)
      : request_(request),
        trained_(trained_parameters(request.model, request.tuner, request.four_bit)) {
    tokens_ = of(request.row_tokens());
    pads_ = tokens_ * request.visual_share;
    bytes_ = of(request.value_bytes);
    passes_ = request.gradient_checkpointing == Checkpointing::kOff ? 1 : 2;
  }

  SpeedPart decoder() const {
    const TextDescription& text = request_.model.text;
    SpeedPart part{.name = "decoder layers"};
    for (const LayerDescription& layer : text.layers) {
      for (const LinearDescription& linear : layer_linears(layer))
        add_linear(linear, linear.module == layer.mlp.down.module, part);
      const double heads =
          of((text.num_attention_heads + text.num_key_value_heads) * text.head_dim);
      // two norms, q/k norms (2), rotations (7), SwiGLU (5), residuals (6); values a token
      const double values = 4 * of(text.hidden_size) + 9 * heads + 5 * of(text.intermediate_size) +
                            6 * of(text.hidden_size);
      part.bytes += bytes_ * tokens_ * values * (passes_ + 1.5);
      part.launches += 24 * passes_ + 50;
    }
    return part;
  }

  SpeedPart attention() const {
    const TextDescription& text = request_.model.text;
    const double segment = tokens_ / (request_.pack.enabled ? 4 : 1);
    // two products, half of them hidden by the causal mask
    const double flops = 2 * tokens_ * segment * of(text.num_attention_heads * text.head_dim);
    return {.name = "attention",
            .flops = of(text.num_attention_layers()) * flops * (passes_ + kAttentionBackward)};
  }

  SpeedPart vision() const {
    const VisionDescription& vision = request_.model.vision;
    SpeedPart part{.name = "vision tower"};
    const double rows = pads_ * of(vision.merge_area()), width = of(vision.hidden_size);
    const double backward = trained_.reaches_vision ? passes_ + kBackward : 1;
    const double products =
        2 * rows * (4 * width * width + 2 * width * of(vision.intermediate_size));
    part.flops = of(static_cast<int64_t>(vision.blocks.size())) * products * backward;
    part.bytes =
        bytes_ * rows * width * 40 * of(static_cast<int64_t>(vision.blocks.size())) * backward;
    part.launches = of(static_cast<int64_t>(vision.blocks.size())) * 22 * backward;
    return part;
  }

  // Chunks of positions: logits, their gradient, and the head's gradient, read and written by each.
  SpeedPart head() const {
    const TextDescription& text = request_.model.text;
    SpeedPart part{.name = "head and loss"};
    const double positions = tokens_ - pads_, matrix = of(text.vocab_size * text.hidden_size);
    const double products = trained_.trains_head ? 3 : 2;
    part.flops = 2 * positions * matrix * products;
    const LossOptions loss;
    const double chunk =
        std::min(of(loss.chunk_positions),
                 of((request_.device.on_gpu ? loss.device_chunk_bytes : loss.chunk_bytes) /
                    (text.vocab_size * kFloatBytes)));
    const double num_chunks = std::max(1.0, positions / std::max(1.0, chunk));
    part.bytes =
        positions * of(text.vocab_size) * 6 * of(kFloatBytes) +
        num_chunks * matrix * (bytes_ + (trained_.trains_head ? bytes_ + 2 * of(kFloatBytes) : 0));
    part.launches = num_chunks * 30;
    return part;
  }

  SpeedPart adapters() const {
    SpeedPart part{.name = "adapters"};
    if (trained_.num_adapter == 0) return part;
    const double rank = of(request_.tuner.lora.rank);
    for (const LayerDescription& layer : request_.model.text.layers) {
      for (const LinearDescription& linear : layer_linears(layer)) {
        if (trained_.adapted.count(linear.module) == 0) continue;
        const double inputs = of(linear.num_inputs), outputs = of(linear.num_outputs);
        part.flops += 2 * tokens_ * rank * (inputs + outputs) * (passes_ + kBackward);
        // dropout and its mask, the two thin products, the second of which adds to the output
        part.bytes += bytes_ * tokens_ * (4 * inputs + 2 * outputs) * (passes_ + 1.5);
        part.launches += 5 * passes_ + 11;
      }
    }
    return part;
  }

  // Operations that any program needs for this row.
  double needed_flops() const {
    const TextDescription& text = request_.model.text;
    double flops = attention().flops / (passes_ + kAttentionBackward) * (1 + kAttentionBackward);
    for (const LinearDescription& linear : request_.model.linears()) {
      const bool is_text = linear.module.find("visual") == std::string::npos;
      const double rows = is_text ? tokens_ : pads_ * of(request_.model.vision.merge_area());
      const bool trains = trained_.full.count(linear.module + ".weight") != 0;
      if (linear.module == text.head.module) continue;
      const double backward = is_text || trained_.reaches_vision ? 1 : 0;
      flops +=
          2 * rows * of(linear.num_inputs * linear.num_outputs) * (1 + backward + (trains ? 1 : 0));
    }
    return flops + head().flops;
  }

 private:
  // Products of a Linear with its weight: forward passes, the input's gradient, the weight's.
  // Recomputation leaves out results that are kept, and the layer's last one. DoRA's gradients read
  // a result of the base: this one, or with dropout that of a second product.
  double num_products(const LinearDescription& linear, bool is_last) const {
    const LoraSettings& lora = request_.tuner.lora;
    const bool is_dora = lora.use_dora && trained_.adapted.count(linear.module) != 0,
               has_two = is_dora && lora.dropout > 0,
               is_unread = is_last || request_.gradient_checkpointing == Checkpointing::kSelective;
    const double passes = is_unread && (!is_dora || has_two) ? 1 : passes_;
    const bool trains_weight = trained_.full.count(linear.module + ".weight") != 0;
    return passes + 1 + (has_two ? passes_ + 1 : 0) + (trains_weight ? 1 : 0);
  }

  void add_linear(const LinearDescription& linear, bool is_last, SpeedPart& part) const {
    const Product product{
        .rows = tokens_, .inputs = of(linear.num_inputs), .outputs = of(linear.num_outputs)};
    const double times = num_products(linear, is_last);
    part.flops += product.flops() * times;
    part.bytes += product.bytes(bytes_) * times * 0.5;  // half of it is hidden behind the products
  }

  const PlanRequest& request_;
  TrainedParameters trained_;
  double tokens_ = 0, pads_ = 0, bytes_ = 0;
  double passes_ = 0;  ///< forward passes of norms, activations and attention
};

// AdamW and the float32 sums of gradients, once a step, for the share of a row.
SpeedPart optimizer(const PlanRequest& request) {
  const TrainedParameters trained =
      trained_parameters(request.model, request.tuner, request.four_bit);
  const double values = of(trained.num_values()), rows = of(request.window_samples());
  // moments, master and gradient are read, three of them written; the weight; the norm
  const double bytes = values * (7 * of(kFloatBytes) + of(request.value_bytes) + of(kFloatBytes));
  return {.name = "optimizer",
          .bytes = bytes / std::max(1.0, rows) + values * (2 * of(kFloatBytes)),
          .launches = 12 / std::max(1.0, rows)};
}

}  // namespace

Card find_card(const std::string& name) {
  std::string known;
  for (const Card& card : kCards) {
    if (card.name == name) return card;
    known += (known.empty() ? "" : ", ") + card.name;
  }
  throw UserError(ErrorKind::kConfig, {.error = "unknown card",
                                       .where = "--speed",
                                       .what = "\"" + name + "\"",
                                       .fix = "use one of " + known});
}

SpeedPlan plan_speed(const PlanRequest& request, const Card& card) {
  const Row row(request);
  SpeedPlan plan;
  plan.parts = {row.decoder(), row.attention(), row.vision(),
                row.head(),    row.adapters(),  optimizer(request)};
  std::erase_if(plan.parts, [](const SpeedPart& part) { return part.flops + part.bytes == 0; });
  double gpu_seconds = 0, launches = 0;
  for (SpeedPart& part : plan.parts) {
    const double share = part.name == "attention" ? kAttentionShare : kProductShare;
    part.seconds =
        part.flops / (share * card.flops) + part.bytes / (kBandwidthShare * card.bytes_per_second);
    gpu_seconds += part.seconds;
    launches += part.launches;
  }
  plan.launch_seconds = launches * kLaunchSeconds;
  plan.seconds = std::max(gpu_seconds, plan.launch_seconds);
  plan.share_of_peak = row.needed_flops() / (plan.seconds * card.flops);
  return plan;
}

std::string speed_text(const PlanRequest& request, const Card& card, const SpeedPlan& plan) {
  std::string text = fmt::format("speed on {}: computed, never measured\n", card.name);
  text += fmt::format("a row of {} tokens: {:.0f} ms, {:.0f} % of {:.0f} TFLOP/s\n\n",
                      request.row_tokens(), plan.seconds * 1e3, plan.share_of_peak * 100,
                      card.flops / 1e12);
  text += fmt::format("{:<16} {:>10} {:>10} {:>10} {:>8} {:>7}\n", "part", "TFLOP", "GB",
                      "launches", "ms", "share");
  for (const SpeedPart& part : plan.parts) {
    text += fmt::format("{:<16} {:>10.2f} {:>10.1f} {:>10.0f} {:>8.1f} {:>5.0f} %\n", part.name,
                        part.flops / 1e12, part.bytes / 1e9, part.launches, part.seconds * 1e3,
                        100 * part.seconds / plan.seconds);
  }
  return text +
         fmt::format("launching alone takes the host {:.0f} ms\n", plan.launch_seconds * 1e3);
}

}  // namespace rematch
