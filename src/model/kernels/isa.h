#pragma once
#include <vector>

namespace rematch::kernels {

/// Instruction sets that the kernels are compiled for, slowest first. Results differ in the last
/// bits.
enum class Isa { kPortable, kAvx2, kAvx512 };

/// Instruction sets that this processor supports and this build contains.
std::vector<Isa> available_isas();

/// The instruction set in use: the best available, unless REMATCH_ISA (`portable`, `avx2`,
/// `avx512`) or use_isa() selects another.
Isa isa_in_use();

/// Selects one of available_isas(); for tests and benches, never while kernels run.
void use_isa(Isa isa);

/// `portable`, `avx2` or `avx512`.
const char* isa_name(Isa isa);

}  // namespace rematch::kernels
