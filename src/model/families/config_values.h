#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fields.h"

namespace rematch {

// Values of config.json for every family. All throw UserError (data) naming the key for a value of
// the wrong type or out of range.

/// An integer from `least` to 2³¹ − 1.
int64_t config_count(JsonFields& fields, const std::string& key, int64_t fallback,
                     int64_t least = 1);
/// A number of layers. Its limit is lower than that of a count, because every layer is described
/// and planned before its first tensor is looked up.
int64_t config_layers(JsonFields& fields, const std::string& key, int64_t fallback,
                      int64_t least = 1);
/// A count, also as a list of equal numbers ("patch_size": [16, 16]).
int64_t config_side(JsonFields& fields, const std::string& key, int64_t fallback);
/// Counts of 0 or more.
std::vector<int64_t> config_counts(JsonFields& fields, const std::string& key,
                                   std::vector<int64_t> fallback);
/// A finite number above 0.
double config_positive(JsonFields& fields, const std::string& key, double fallback);
/// Rejects a string that is not in `implemented`; an absent one means the first.
void require_config_text(JsonFields& fields, const std::string& key,
                         const std::vector<std::string>& implemented);
/// A tower's rotary settings: a non-empty rope_scaling (transformers 4.57) replaces rope_parameters
/// (5.x) entirely.
/// @param implemented_types  of `rope_type` or the older `type`; others change the frequencies
JsonFields config_rope(JsonFields& tower, const std::vector<std::string>& implemented_types);
/// True for a key with the value null, which transformers' classes treat differently from an absent
/// key.
bool is_explicit_null(const Json& object, const char* key);
/// The embedding row without gradient; -1 = none. As in PyTorch, a negative index counts from the
/// end.
int64_t config_pad_token(JsonFields& fields, int64_t vocab_size);

}  // namespace rematch
