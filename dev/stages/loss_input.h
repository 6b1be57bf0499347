#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/flow/segment.h"
#include "base/json.h"
#include "learn/mstep/loss/losses.h"
#include "tools/stages/stage.h"

namespace rematch {

/// Reads `labels` and the slots of every kind (`coord_slots`) of the `loss` and `grad` stages into
/// a segment whose token_ids are set.
/// @param fields      the input line, or one of its segments
/// @param what        its name in errors
/// @param vocab_size  labels are below it
/// @throws UserError (data) for a different length, labels or slots without a preceding position, a
/// position taught twice, unknown targets and sources
void read_supervision(JsonFields& fields, const std::string& what, int64_t vocab_size,
                      Segment& segment);

/// Reads `coord_token_ids`: 1000 distinct ids in bin order.
/// @throws UserError (data)
std::array<TokenId, 1000> read_coord_token_ids(JsonFields& fields, int64_t vocab_size);

/// Reads the settings of all losses by their key names (loss_keys()); null and absent ones keep
/// their defaults.
/// @throws UserError (config) for unknown keys and values out of range
LossOptions read_loss_options(JsonFields options);

}  // namespace rematch
