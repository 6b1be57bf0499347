#pragma once

namespace rematch {

/// Makes SIGINT and SIGTERM raise a flag that long work polls; a second one stops the process at once (exit 130).
void install_interrupt_handlers();

/// True once SIGINT or SIGTERM came. Async-signal-safe, cheap enough for inner loops.
bool interrupt_requested();

/// Raises (or clears) the flag by hand, for tests.
void set_interrupt_requested(bool requested);

/// Thrown by long work that saw the flag and left nothing half done.
struct Interrupted {};

/// Throws Interrupted when the flag is up.
void throw_if_interrupted();

}  // namespace rematch
