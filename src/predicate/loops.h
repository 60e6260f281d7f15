/// \file
/// The loops over numbers (loop.h), for several sets of instructions, of which the processor chooses once.
///
/// Thread safety: any thread.
#pragma once

#include <cstdint>

#include "predicate/loop.h"

namespace tidelane::predicate {

/// A set of processor instructions that the loops are compiled for.
enum class Instructions : uint8_t { kBaseline, kAvx2, kAvx512 };
inline constexpr Instructions kAllInstructions[] = {Instructions::kBaseline, Instructions::kAvx2,
                                                    Instructions::kAvx512};

Loop BaselineLoop(const Shape& shape);
Loop Avx2Loop(const Shape& shape);    ///< nullptr: not this architecture
Loop Avx512Loop(const Shape& shape);  ///< likewise

/// Does this machine have them?
bool Has(Instructions instructions);
/// Of the best set, or of a forced one.
Loop LoopOf(const Shape& shape);
/// For tests: LoopOf's choice from now on. false: this machine has not got them, nothing changed.
bool ForceInstructions(Instructions instructions);
void ForceNoInstructions();

}  // namespace tidelane::predicate
