#pragma once
#include <string>
#include <vector>

#include "model/checkpoint/hf_dir.h"
#include "model/nn/four_bit.h"

namespace rematch {

// A weight that bitsandbytes packed is several tensors: NAME (codes), NAME.absmax, NAME.quant_map,
// NAME.quant_state.bitsandbytes__nf4 (JSON) and, with double quantisation, NAME.nested_absmax and
// NAME.nested_quant_map.

/// True if a stored weight is packed.
bool is_four_bit(const HfDir& dir, const std::string& name);

/// True for a tensor that belongs to a packed weight and is not its codes.
bool is_four_bit_state(const std::string& tensor);

/// Names of the stored tensors of a packed weight.
Strings four_bit_tensors(const HfDir& dir, const std::string& name);

/// A packed weight [num_outputs, num_inputs] on the CPU.
/// @throws UserError (data), naming tensor and numbers, for anything missing, misshapen, not finite
/// or contradictory
FourBitWeight read_four_bit(const HfDir& dir, const std::string& name, int64_t num_outputs,
                            int64_t num_inputs);

}  // namespace rematch
