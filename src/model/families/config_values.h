#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fields.h"

namespace rematch {

// Values of config.json for every family. All throw UserError (data) naming the key for a value of
// the wrong type or out of range. Every number has an upper limit by its key (config_values.cc):
// memory is planned and tables are made from these numbers before a tensor shows that one is wrong.

/// An integer from `least` to the limit of its key.
int64_t config_count(JsonFields& fields, const std::string& key, int64_t fallback,
                     int64_t least = 1);
/// A number of layers, each of which is described.
int64_t config_layers(JsonFields& fields, const std::string& key, int64_t fallback,
                      int64_t least = 1);
/// A count, also as a list of equal numbers ("patch_size": [16, 16]).
int64_t config_side(JsonFields& fields, const std::string& key, int64_t fallback);
/// At most 1024 integers from 0 to the limit of their key.
std::vector<int64_t> config_counts(JsonFields& fields, const std::string& key,
                                   std::vector<int64_t> fallback);
/// A number above 0, up to the limit of its key.
double config_positive(JsonFields& fields, const std::string& key, double fallback);
/// Rejects a string that is not in `implemented`; an absent one means the first.
void require_config_text(JsonFields& fields, const std::string& key, const Strings& implemented);
/// A tower's rotary settings: a non-empty rope_scaling (transformers 4.57) replaces rope_parameters
/// (5.x) entirely.
/// @param implemented_types  of `rope_type` or the older `type`; others change the frequencies
JsonFields config_rope(JsonFields& tower, const Strings& implemented_types);
/// True for a key with the value null, which transformers' classes treat differently from an absent
/// key.
bool is_explicit_null(const Json& object, const char* key);
/// The embedding row without gradient; -1 = none. As in PyTorch, a negative index counts from the
/// end.
int64_t config_pad_token(JsonFields& fields, int64_t vocab_size);

}  // namespace rematch
