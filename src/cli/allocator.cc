// jemalloc's settings, read before main. Training frees and takes the same large blocks every step: giving them back to the kernel
// meanwhile costs a fifth of a small model's step in page faults. One arena, so that what one thread freed the other can use.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "narenas:1,oversize_threshold:0,dirty_decay_ms:-1,muzzy_decay_ms:-1";
}
