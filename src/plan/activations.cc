#include "plan/activations.h"

#include <algorithm>
#include <initializer_list>

namespace rematch {
namespace {

// Bytes that autograd keeps for one row of activations (a token, or a patch).
class Saved {
 public:
  Saved(const TrainedParameters& trained, const Computation& computation)
      : trained_(trained), computation_(computation) {}

  /// Values in the dtype of the model.
  void values(int64_t count) { bytes_ += count * computation_.value_bytes; }
  void floats(int64_t count) { bytes_ += count * kFloatBytes; }

  /// The input of Linears that share it. @param is_kept  another operator keeps it anyway
  void input(std::initializer_list<const LinearDescription*> linears, bool is_kept = false) {
    bool is_saved = is_kept;
    const int64_t width = (*linears.begin())->num_inputs;
    for (const LinearDescription* linear : linears) {
      const bool is_adapted = trained_.adapted.count(linear->module) != 0;
      // float32 products on the CPU keep their input even if the weight is frozen (nn/affine.cc);
      // ATen's do not.
      const bool is_needed =
          !is_adapted || (!computation_.on_gpu && computation_.value_bytes == kFloatBytes);
      if (is_needed && !is_saved) values(width);
      is_saved = is_saved || is_needed;
      if (is_adapted) adapter(*linear, is_saved);
    }
  }

  int64_t bytes() const { return bytes_; }

 private:
  void adapter(const LinearDescription& linear, bool input_is_saved) {
    const bool drops = computation_.lora.dropout > 0;
    const bool shares_input = input_is_saved && !drops && computation_.value_bytes == kFloatBytes;
    if (!shares_input) floats(linear.num_inputs);
    if (drops) bytes_ += linear.num_inputs;  // the mask, one byte a value
    floats(computation_.lora.rank);
    // the base output and the update
    if (computation_.lora.use_dora) floats(2 * linear.num_outputs);
  }

  const TrainedParameters& trained_;
  const Computation& computation_;
  int64_t bytes_ = 0;
};

int64_t text_layer(const TextDescription& text, const LayerDescription& layer, Saved saved,
                   bool is_packed) {
  const int64_t q = layer.q.num_outputs, kv = layer.k.num_outputs;
  saved.values(text.hidden_size);  // the layer's input
  saved.floats(1);
  saved.input({&layer.q, &layer.k, &layer.v});
  if (layer.q_norm) {
    saved.values(q + kv);  // heads before their norms
    saved.floats(text.num_attention_heads + text.num_key_value_heads);
  }
  saved.values(q + 2 * kv);  // rotated queries and keys, values
  saved.values(q);           // attended
  saved.floats(text.num_attention_heads);
  saved.input({&layer.o}, /*is_kept=*/!is_packed);
  saved.values(text.hidden_size);  // input of the second norm
  saved.floats(1);
  saved.input({&*layer.mlp.gate, &layer.mlp.up});
  saved.values(3 * text.intermediate_size);  // gate, its activation, up
  saved.input({&layer.mlp.down});
  return saved.bytes();
}

int64_t vision_block(const VisionDescription& vision, const VisionBlockDescription& block,
                     Saved saved) {
  const int64_t width = vision.hidden_size;
  saved.values(width);
  saved.floats(2);
  saved.input({&block.qkv});
  // values (a view of all three), rotated queries and keys, attended
  saved.values(3 * width + 2 * width + width);
  saved.floats(vision.num_heads);
  saved.input({&block.proj}, /*is_kept=*/true);
  saved.values(width);
  saved.floats(2);
  saved.input({&block.mlp.up});
  saved.values(vision.intermediate_size * (block.mlp.gate ? 3 : 1));
  saved.input({&block.mlp.down});
  return saved.bytes();
}

// Of one visual token.
int64_t merger_of(const MergerDescription& merger, Saved saved) {
  saved.floats(2);
  saved.input({&merger.fc1});
  saved.values(merger.fc1.num_outputs);
  saved.input({&merger.fc2});
  return saved.bytes();
}

struct Tower {
  int64_t kept = 0, layer = 0;  ///< bytes a row of activations: all layers, the largest layer
};

Tower decoder(const ModelDescription& model, const Saved& none, bool is_packed) {
  Tower sums;
  for (const LayerDescription& layer : model.text.layers) {
    const int64_t bytes = text_layer(model.text, layer, none, is_packed);
    sums.kept += bytes;
    sums.layer = std::max(sums.layer, bytes);
  }
  return sums;
}

Tower vision_blocks(const VisionDescription& vision, const Saved& none) {
  Tower sums;
  for (const VisionBlockDescription& block : vision.blocks) {
    const int64_t bytes = vision_block(vision, block, none);
    sums.kept += bytes;
    sums.layer = std::max(sums.layer, bytes);
  }
  return sums;
}

}  // namespace

RowMemory row_memory(const ModelDescription& model, const TrainedParameters& trained,
                     const Computation& computation, const RowShape& row) {
  const TextDescription& text = model.text;
  const VisionDescription& vision = model.vision;
  const Saved none(trained, computation);
  const int64_t e = computation.value_bytes, patches = row.num_patches(vision);
  RowMemory memory;

  const Tower layers = decoder(model, none, row.is_packed);
  const int64_t inputs = static_cast<int64_t>(text.layers.size()) * text.hidden_size * e;
  // Input and output of the last norm, the gradient of the output; cosines and sines.
  const int64_t ends = (3 * text.hidden_size + 2 * text.head_dim) * e;
  const int64_t passing = (2 * text.intermediate_size + 3 * text.hidden_size) * e;
  memory.text = row.num_tokens * ((computation.checkpointing ? inputs : layers.kept) + ends);
  memory.text_passing = row.num_tokens * (passing + (computation.checkpointing ? layers.layer : 0));

  const Tower blocks = vision_blocks(vision, none);
  const int64_t block_inputs = static_cast<int64_t>(vision.blocks.size()) * vision.hidden_size * e;
  int64_t mergers = merger_of(vision.merger, none);
  for (const MergerDescription& merger : vision.deepstack_mergers)
    mergers += merger_of(merger, none);
  const int64_t passing_patch = (2 * vision.intermediate_size + 3 * vision.hidden_size) * e;
  if (trained.reaches_vision) {
    const int64_t tower_ends =
        (vision.hidden_size + vision.patch_width()) * e + 2 * vision.head_dim() * kFloatBytes;
    memory.vision =
        patches * ((computation.checkpointing ? block_inputs : blocks.kept) + tower_ends);
    memory.vision_passing =
        patches * (passing_patch + (computation.checkpointing ? blocks.layer : 0));
  } else {
    // One block at a time, without a graph.
    memory.vision_passing = patches * (vision.patch_width() * kFloatBytes +
                                       (7 * vision.hidden_size + 2 * vision.intermediate_size) * e);
  }
  if (trained.reaches_mergers) {
    const auto num_features = static_cast<int64_t>(1 + vision.deepstack_mergers.size());
    // else a block's input already
    const int64_t hidden = trained.reaches_vision ? 0 : num_features * vision.hidden_size * e;
    memory.vision += row.num_visual_tokens * mergers + patches * hidden;
  }
  return memory;
}

}  // namespace rematch
