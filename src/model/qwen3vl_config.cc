#include "model/qwen3vl_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "checkpoint/model_dir.h"

namespace rematch {
namespace {

[[noreturn]] void bad_value(const std::string& where, const std::string& key, const std::string& what, const std::string& fix) {
  throw UserError(ErrorKind::kData,
                  {.error = fmt::format("{} in config.json is not usable", key), .where = where, .what = what, .fix = fix});
}

// Typed members of one object of config.json; an absent or null member gives the class default of transformers.
class ConfigReader {
 public:
  ConfigReader(const Json& value, std::string where, std::string prefix)
      : value_(value), where_(std::move(where)), prefix_(std::move(prefix)) {
    if (!value_.is_object()) bad_value(where_, prefix_.empty() ? "the document" : prefix_, value_.type_name(), "give a JSON object");
  }

  const Json* find(const std::string& key) const {
    const auto found = value_.find(key);
    return found == value_.end() || found->is_null() ? nullptr : &*found;
  }

  /// True for an explicit null.
  bool is_null(const std::string& key) const {
    const auto found = value_.find(key);
    return found != value_.end() && found->is_null();
  }

  std::string name(const std::string& key) const { return prefix_.empty() ? key : prefix_ + "." + key; }
  const std::string& where() const { return where_; }

  /// An integer ≥ `least`.
  int64_t integer(const std::string& key, int64_t fallback, int64_t least = 1) const {
    const Json* member = find(key);
    return member == nullptr ? fallback : to_integer(key, *member, least);
  }

  /// As integer(), but a list of equal numbers counts as that number ("patch_size": [16, 16]).
  int64_t side(const std::string& key, int64_t fallback) const {
    const Json* member = find(key);
    if (member == nullptr || !member->is_array()) return integer(key, fallback);
    const bool is_square =
        !member->empty() && std::all_of(member->begin(), member->end(), [&](const Json& item) { return item == member->front(); });
    if (!is_square) bad_value(where_, name(key), member->dump(), "give one integer");
    return to_integer(key, member->front(), 1);
  }

  double number(const std::string& key, double fallback) const {
    const Json* member = find(key);
    if (member == nullptr) return fallback;
    if (!member->is_number() || !std::isfinite(member->get<double>()) || member->get<double>() <= 0) {
      bad_value(where_, name(key), member->dump(), "give a number above 0");
    }
    return member->get<double>();
  }

  bool boolean(const std::string& key, bool fallback) const {
    const Json* member = find(key);
    if (member == nullptr) return fallback;
    if (!member->is_boolean()) bad_value(where_, name(key), member->dump(), "give true or false");
    return member->get<bool>();
  }

  std::string text(const std::string& key, const std::string& fallback) const {
    const Json* member = find(key);
    if (member == nullptr) return fallback;
    if (!member->is_string()) bad_value(where_, name(key), member->dump(), "give text");
    return member->get<std::string>();
  }

  std::vector<int64_t> integers(const std::string& key, std::vector<int64_t> fallback) const {
    const Json* member = find(key);
    if (member == nullptr) return fallback;
    if (!member->is_array()) bad_value(where_, name(key), member->dump(), "give a list of integers");
    std::vector<int64_t> values;
    for (const Json& item : *member) values.push_back(to_integer(key, item, 0));
    return values;
  }

  ConfigReader object(const std::string& key) const {
    static const Json kEmpty = Json::object();
    const Json* member = find(key);
    return {member == nullptr ? kEmpty : *member, where_, name(key)};
  }

 private:
  int64_t to_integer(const std::string& key, const Json& value, int64_t least) const {
    const bool is_legal = value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= 0x7fffffffu) &&
                          value.get<int64_t>() >= least && value.get<int64_t>() <= std::numeric_limits<int32_t>::max();
    if (!is_legal) {
      bad_value(where_, name(key), value.dump(), fmt::format("give an integer from {} to {}", least, std::numeric_limits<int32_t>::max()));
    }
    return value.get<int64_t>();
  }

  const Json& value_;
  std::string where_;
  std::string prefix_;
};

void require_text(const ConfigReader& reader, const std::string& key, const std::string& wanted) {
  const std::string found = reader.text(key, wanted);
  if (found != wanted) {
    bad_value(reader.where(), reader.name(key), fmt::format("\"{}\"", found), fmt::format("only \"{}\" is implemented", wanted));
  }
}

// Both spellings: a non-empty rope_scaling (4.57) replaces rope_parameters (5.x) whole; a theta inside beats the outer one.
ConfigReader rope_object(const ConfigReader& tower) {
  const ConfigReader old_spelling = tower.object("rope_scaling");
  const Json* scaling = tower.find("rope_scaling");
  return scaling != nullptr && !scaling->empty() ? old_spelling : tower.object("rope_parameters");
}

void require_rope_type(const ConfigReader& rope, const std::vector<std::string>& allowed) {
  const std::string type = rope.text("rope_type", rope.text("type", allowed.front()));
  if (std::find(allowed.begin(), allowed.end(), type) == allowed.end()) {
    bad_value(rope.where(), rope.name("rope_type"), fmt::format("rope type \"{}\" changes the frequencies and is not implemented", type),
              fmt::format("use a checkpoint with rope type \"{}\"", allowed.front()));
  }
}

TextConfig read_text(const ConfigReader& reader) {
  TextConfig text;
  text.vocab_size = reader.integer("vocab_size", 151936);
  text.hidden_size = reader.integer("hidden_size", 4096);
  text.intermediate_size = reader.integer("intermediate_size", 22016);
  text.num_hidden_layers = reader.integer("num_hidden_layers", 32);
  text.num_attention_heads = reader.integer("num_attention_heads", 32);
  text.num_key_value_heads = reader.integer("num_key_value_heads", reader.is_null("num_key_value_heads") ? text.num_attention_heads : 32);
  text.head_dim = reader.integer("head_dim", 128);
  text.rms_norm_eps = reader.number("rms_norm_eps", 1e-6);
  require_text(reader, "hidden_act", "silu");
  if (reader.boolean("attention_bias", false)) {
    bad_value(reader.where(), reader.name("attention_bias"), "true", "only checkpoints without attention biases are implemented");
  }
  const ConfigReader rope = rope_object(reader);
  require_rope_type(rope, {"default"});
  text.rope_theta = rope.number("rope_theta", reader.number("rope_theta", 500000));
  const std::vector<int64_t> section = rope.integers("mrope_section", {24, 20, 20});
  if (section.size() != 3) {
    bad_value(reader.where(), rope.name("mrope_section"), fmt::format("{} numbers", section.size()), "give three: t, h, w");
  }
  std::copy(section.begin(), section.end(), text.mrope_section.begin());
  // transformers counts a negative padding index from the end, as every PyTorch embedding does.
  text.pad_token_id = reader.integer("pad_token_id", std::numeric_limits<int64_t>::max(), -text.vocab_size);
  if (text.pad_token_id == std::numeric_limits<int64_t>::max()) {
    text.pad_token_id = -1;
  } else if (text.pad_token_id < 0) {
    text.pad_token_id += text.vocab_size;
  }

  if (text.num_attention_heads % text.num_key_value_heads != 0) {
    bad_value(reader.where(), reader.name("num_key_value_heads"),
              fmt::format("{} query heads over {}", text.num_attention_heads, text.num_key_value_heads),
              "query heads must be a multiple of key/value heads");
  }
  if (text.head_dim % 2 != 0) {
    bad_value(reader.where(), reader.name("head_dim"), std::to_string(text.head_dim), "rotary needs an even head size");
  }
  if (text.pad_token_id >= text.vocab_size) {
    bad_value(reader.where(), reader.name("pad_token_id"), fmt::format("{} with {} embedding rows", text.pad_token_id, text.vocab_size),
              "give an id of the vocabulary");
  }
  return text;
}

VisionConfig read_vision(const ConfigReader& reader) {
  VisionConfig vision;
  vision.hidden_size = reader.integer("hidden_size", 1152);
  vision.intermediate_size = reader.integer("intermediate_size", 4304);
  vision.depth = reader.integer("depth", 27, 0);
  vision.num_heads = reader.integer("num_heads", 16);
  vision.in_channels = reader.integer("in_channels", 3);
  vision.patch_size = reader.side("patch_size", 16);
  vision.temporal_patch_size = reader.side("temporal_patch_size", 2);
  vision.spatial_merge_size = reader.integer("spatial_merge_size", 2);
  vision.num_position_embeddings = reader.integer("num_position_embeddings", 2304);
  vision.out_hidden_size = reader.integer("out_hidden_size", 3584);
  vision.deepstack_visual_indexes = reader.integers("deepstack_visual_indexes", {8, 16, 24});
  require_text(reader, "hidden_act", "gelu_pytorch_tanh");
  const ConfigReader rope = rope_object(reader);
  require_rope_type(rope, {"axial", "default"});
  vision.rope_theta = rope.number("rope_theta", reader.number("rope_theta", 10000));

  if (vision.hidden_size % vision.num_heads != 0 || vision.hidden_size / vision.num_heads % 4 != 0) {
    bad_value(reader.where(), reader.name("num_heads"), fmt::format("{} over {} heads", vision.hidden_size, vision.num_heads),
              "each head needs a multiple of 4 channels (rows and columns are rotated in pairs)");
  }
  for (const int64_t block : vision.deepstack_visual_indexes) {
    if (block >= vision.depth) {
      bad_value(reader.where(), reader.name("deepstack_visual_indexes"), fmt::format("block {} of {}", block, vision.depth),
                "give indices below depth");
    }
  }
  return vision;
}

}  // namespace

Qwen3VLConfig Qwen3VLConfig::from_model_dir(const std::string& model_dir) {
  require_model_dir(model_dir);
  const std::string path = join_path(model_dir, "config.json");
  const Json root = read_json_file(path);
  const ConfigReader reader(root, path, "");
  const std::string model_type = reader.text("model_type", "");
  if (model_type != "qwen3_vl") {
    bad_value(path, "model_type", model_type.empty() ? "absent" : fmt::format("\"{}\"", model_type),
              "give a dense Qwen3-VL checkpoint (model_type \"qwen3_vl\")");
  }
  for (const char* part : {"text_config", "vision_config"}) {
    if (reader.find(part) == nullptr) bad_value(path, part, "absent", "give a config.json with text_config and vision_config");
  }
  Qwen3VLConfig config;
  config.text = read_text(reader.object("text_config"));
  config.vision = read_vision(reader.object("vision_config"));
  config.tie_word_embeddings = reader.boolean("tie_word_embeddings", false);
  config.image_token_id = reader.integer("image_token_id", config.image_token_id, 0);
  config.vision_start_token_id = reader.integer("vision_start_token_id", config.vision_start_token_id, 0);
  if (config.vision.out_hidden_size != config.text.hidden_size) {
    bad_value(path, "vision_config.out_hidden_size",
              fmt::format("{} against text_config.hidden_size {}", config.vision.out_hidden_size, config.text.hidden_size),
              "both must be equal: visual rows replace embeddings");
  }
  return config;
}

}  // namespace rematch
