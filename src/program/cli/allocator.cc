// jemalloc's settings, read before main. Training frees and allocates the same large blocks every
// step: returning them to the kernel in between costs a fifth of a small model's step in page
// faults. One arena, so that a thread can reuse what another one freed. Freed neighbours join to
// blocks of gigabytes, and jemalloc takes memory for an allocation only from a block of at most
// 2^lg_extent_max_active_fit times its size: with its default of 6 a LoRA run of a 0.8B model grew
// by two gigabytes a row, and half of its time were page faults.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf =
    "narenas:1,oversize_threshold:0,dirty_decay_ms:-1,muzzy_decay_ms:-1,"
    "lg_extent_max_active_fit:20";
}
