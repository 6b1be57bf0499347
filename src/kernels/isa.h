#pragma once
#include <vector>

namespace rematch::kernels {

/// Instruction sets the kernels are compiled for, slowest first. Results differ between them in the
/// last bits.
enum class Isa { kPortable, kAvx2, kAvx512 };

/// Those that this processor supports and this build contains.
std::vector<Isa> available_isas();

/// The one in use: the best available, unless REMATCH_ISA (`portable`, `avx2`, `avx512`) or
/// use_isa() says otherwise.
Isa isa_in_use();

/// Chooses one of available_isas(); for tests and benches, and not while kernels run.
void use_isa(Isa isa);

/// `portable`, `avx2` or `avx512`.
const char* isa_name(Isa isa);

}  // namespace rematch::kernels
