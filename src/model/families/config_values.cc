#include "model/families/config_values.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

namespace rematch {

namespace {

constexpr int64_t kMostLayers = 1024;
constexpr int64_t kMostOther = int64_t{1} << 20;  // widths, and keys that the table lacks

struct Limit {
  const char* key;
  int64_t most;
};

// At least ten times the largest value of any published model.
constexpr Limit kLimits[] = {{"vocab_size", int64_t{1} << 24},
                             {"image_token_id", int64_t{1} << 24},
                             {"pad_token_id", int64_t{1} << 24},
                             {"num_position_embeddings", int64_t{1} << 24},
                             {"num_hidden_layers", kMostLayers},
                             {"depth", kMostLayers},
                             {"deepstack_visual_indexes", kMostLayers},
                             {"fullatt_block_indexes", kMostLayers},
                             {"num_attention_heads", 4096},
                             {"num_key_value_heads", 4096},
                             {"num_heads", 4096},
                             {"head_dim", 16384},
                             {"mrope_section", 16384},
                             {"window_size", 65536},
                             {"patch_size", 256},
                             {"temporal_patch_size", 64},
                             {"in_channels", 64},
                             {"spatial_merge_size", 8}};
constexpr Limit kNumberLimits[] = {{"rms_norm_eps", 1}, {"rope_theta", 1'000'000'000'000'000}};

template <size_t N>
int64_t find_limit(const Limit (&limits)[N], const std::string& key, int64_t fallback) {
  const auto found = std::find_if(std::begin(limits), std::end(limits),
                                  [&](const Limit& limit) { return limit.key == key; });
  return found == std::end(limits) ? fallback : found->most;
}

}  // namespace

int64_t config_count(JsonFields& fields, const std::string& key, int64_t fallback, int64_t least) {
  return fields.integer_or<int64_t>(key, fallback, least, find_limit(kLimits, key, kMostOther));
}

int64_t config_layers(JsonFields& fields, const std::string& key, int64_t fallback, int64_t least) {
  return fields.integer_or<int64_t>(key, fallback, least, kMostLayers);
}

int64_t config_side(JsonFields& fields, const std::string& key, int64_t fallback) {
  if (const Json* value = fields.find(key); value == nullptr || !value->is_array())
    return config_count(fields, key, fallback);
  const std::vector<int> sides = fields.integers(key);
  const int64_t most = find_limit(kLimits, key, kMostOther);
  const bool is_square = !sides.empty() && sides.front() >= 1 && sides.front() <= most &&
                         std::ranges::count(sides, sides.front()) == std::ssize(sides);
  if (!is_square)
    fields.fail(key,
                fmt::format("expected one integer from 1 to {} or a list of equal ones", most));
  return sides.front();
}

std::vector<int64_t> config_counts(JsonFields& fields, const std::string& key,
                                   std::vector<int64_t> fallback) {
  if (!fields.has(key)) return fallback;
  const std::vector<int> counts = fields.integers(key);
  const int64_t most = find_limit(kLimits, key, kMostOther);
  if (std::ranges::any_of(counts, [&](int count) { return count < 0 || count > most; }))
    fields.fail(key, fmt::format("expected numbers from 0 to {}", most));
  if (std::ssize(counts) > kMostLayers)
    fields.fail(key, fmt::format("expected at most {} numbers", kMostLayers));
  return {counts.begin(), counts.end()};
}

double config_positive(JsonFields& fields, const std::string& key, double fallback) {
  const double number = fields.number_or(key, fallback);
  const int64_t most = find_limit(kNumberLimits, key, kMostOther);
  if (number <= 0 || number > static_cast<double>(most)) {
    fields.fail(key,
                fmt::format("expected a number above 0 and at most {}, found {}", most, number));
  }
  return number;
}

void require_config_text(JsonFields& fields, const std::string& key, const Strings& implemented) {
  const std::string found = fields.text_or(key, implemented.front());
  if (contains(implemented, found)) return;
  fields.fail(key,
              fmt::format("\"{}\" is not implemented, only \"{}\" is", found, implemented.front()));
}

JsonFields config_rope(JsonFields& tower, const Strings& implemented_types) {
  const JsonFields old_spelling = tower.object_or_empty("rope_scaling");
  const Json* scaling = tower.find("rope_scaling");
  JsonFields rope = scaling != nullptr && !scaling->empty()
                        ? old_spelling
                        : tower.object_or_empty("rope_parameters");
  require_config_text(rope, rope.has("rope_type") ? "rope_type" : "type", implemented_types);
  return rope;
}

bool is_explicit_null(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_null();
}

int64_t config_pad_token(JsonFields& fields, int64_t vocab_size) {
  if (!fields.has("pad_token_id")) return -1;
  const int64_t id = config_count(fields, "pad_token_id", 0, -vocab_size);
  if (id >= vocab_size)
    fields.fail("pad_token_id", fmt::format("{} with {} embedding rows", id, vocab_size));
  return id < 0 ? id + vocab_size : id;
}

}  // namespace rematch
