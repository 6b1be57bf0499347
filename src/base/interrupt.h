#pragma once

namespace rematch {

/// Makes SIGINT and SIGTERM set a flag that long-running work polls; a second signal stops the process at once (exit 130).
void install_interrupt_handlers();

/// True once SIGINT or SIGTERM has arrived. Async-signal-safe, cheap enough for inner loops.
bool interrupt_requested();

/// Sets (or clears) the flag directly, for tests.
void set_interrupt_requested(bool requested);

/// Thrown by long-running work that sees the flag and leaves nothing half done.
struct Interrupted {};

/// Throws Interrupted when the flag is set.
void throw_if_interrupted();

}  // namespace rematch
