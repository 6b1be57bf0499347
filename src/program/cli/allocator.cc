// jemalloc's settings, read before main. Training frees and allocates the same large blocks every
// step: returning them to the kernel in between costs a fifth of a small model's step in page
// faults. One arena, so that a thread can reuse what another one freed.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "narenas:1,oversize_threshold:0,dirty_decay_ms:-1,muzzy_decay_ms:-1";
}
