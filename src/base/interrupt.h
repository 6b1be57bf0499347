#pragma once
#include <cstdint>

namespace rematch {

/// Makes SIGINT, SIGTERM and SIGHUP set a flag that long-running work polls; a second SIGINT or
/// SIGTERM stops the process at once (exit 130). A SIGHUP that the process was started to ignore
/// (nohup) stays ignored. A file that outgrows its limit is an error of the write instead of a
/// signal (SIGXFSZ).
void install_interrupt_handlers();

/// The reaction of a training to other signals of terminals, schedulers and spot machines; after
/// install_interrupt_handlers().
///   SIGHUP, SIGPIPE     it continues without its terminal
///   SIGUSR1             take_save_request() is true once: it saves and continues
///   SIGUSR2, SIGXCPU    as SIGTERM
/// A signal that the process was started to ignore stays ignored.
void install_training_signals();

/// True once SIGINT, SIGTERM or SIGHUP (SIGUSR2, SIGXCPU) has arrived. Async-signal-safe, cheap
/// enough for inner loops.
bool interrupt_requested();

/// Sets (or clears) the flag directly, for tests.
void set_interrupt_requested(bool requested);

/// True once for any number of SIGUSR1 since the last call.
bool take_save_request();

/// Thrown by long-running work that sees the flag and leaves nothing half done.
struct Interrupted {};

/// Throws Interrupted when the flag is set. Long-running work calls it at least once for each thing
/// that it finishes.
void throw_if_interrupted();

/// Counts as a call of throw_if_interrupted(), for work that asks the other ranks before it throws.
void count_interrupt_check();

/// Number of interrupt checks so far; if it stops growing, the work is stuck.
int64_t num_interrupt_checks();

}  // namespace rematch
