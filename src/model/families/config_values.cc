#include "model/families/config_values.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace rematch {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
constexpr int64_t kMostLayers = 1024;  // ten times the most of any known model

int64_t config_count(JsonFields& fields, const std::string& key, int64_t fallback, int64_t least) {
  return fields.integer_or<int64_t>(key, fallback, least, kMost);
}

int64_t config_layers(JsonFields& fields, const std::string& key, int64_t fallback, int64_t least) {
  return fields.integer_or<int64_t>(key, fallback, least, kMostLayers);
}

int64_t config_side(JsonFields& fields, const std::string& key, int64_t fallback) {
  if (const Json* value = fields.find(key); value == nullptr || !value->is_array())
    return config_count(fields, key, fallback);
  const std::vector<int> sides = fields.integers(key);
  const bool is_square = !sides.empty() && sides.front() >= 1 &&
                         std::count(sides.begin(), sides.end(), sides.front()) == std::ssize(sides);
  if (!is_square) fields.fail(key, "expected one integer above 0 or a list of equal ones");
  return sides.front();
}

std::vector<int64_t> config_counts(JsonFields& fields, const std::string& key,
                                   std::vector<int64_t> fallback) {
  if (!fields.has(key)) return fallback;
  const std::vector<int> counts = fields.integers(key);
  if (std::any_of(counts.begin(), counts.end(), [](int count) { return count < 0; }))
    fields.fail(key, "expected no negative numbers");
  return {counts.begin(), counts.end()};
}

double config_positive(JsonFields& fields, const std::string& key, double fallback) {
  const double number = fields.number_or(key, fallback);
  if (number <= 0) fields.fail(key, fmt::format("expected a number above 0, found {}", number));
  return number;
}

void require_config_text(JsonFields& fields, const std::string& key,
                         const std::vector<std::string>& implemented) {
  const std::string found = fields.text_or(key, implemented.front());
  if (std::find(implemented.begin(), implemented.end(), found) != implemented.end()) return;
  fields.fail(key,
              fmt::format("\"{}\" is not implemented, only \"{}\" is", found, implemented.front()));
}

JsonFields config_rope(JsonFields& tower, const std::vector<std::string>& implemented_types) {
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
