// Makes one operation of a program fail: LD_PRELOAD=…/librematch_fault_shim.so with
//
//   FAULT_UNDER  directory; operations on other files are neither counted nor touched
//   FAULT_CALL   write, fsync, rename, open (for writing), open-read (also of a directory), read,
//                map (of a file), or malloc (and what else allocates, operator new too; counted
//                from the first file that is opened there)
//   FAULT_AT     which of those calls fails, counted from 1; 0 = none
//   FAULT_MODE   EIO, ENOSPC, EDQUOT, EINTR, EMFILE, ENOMEM, or short (a write or read takes half
//                of what it is given)
//   FAULT_STAYS  1: every later call fails too, as on a disk that stays full
//   FAULT_SIZE   bytes that an allocation must ask for to be counted; 65536 when not given
//   FAULT_COUNT  file that gets the number of calls of each kind when the program ends, one "kind
//                number" a line
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim.h"

enum Kind { kWrite, kFsync, kRename, kOpen, kOpenRead, kRead, kMap, kMalloc, kNumKinds };

static const char* const kNames[kNumKinds] = {"write",     "fsync", "rename", "open",
                                              "open-read", "read",  "map",    "malloc"};
static const struct {
  const char* name;
  int number;
} kErrors[] = {{"ENOSPC", ENOSPC},
               {"EDQUOT", EDQUOT},
               {"EINTR", EINTR},
               {"EMFILE", EMFILE},
               {"ENOMEM", ENOMEM}};

static atomic_long num_calls[kNumKinds];
static atomic_int has_begun;  // a file was opened there
static size_t least_bytes = SIZE_MAX;

__attribute__((constructor)) static void read_size(void) {
  const char* asked = setting("FAULT_SIZE");
  least_bytes = *asked == '\0' ? 65536 : (size_t)atol(asked);
}

static int is_under(const char* path) { return is_below("FAULT_UNDER", path); }

static int is_path_under(const char* path) {
  char whole[8192], directory[4096];
  if (*path == '/' || getcwd(directory, sizeof directory) == NULL) return is_under(path);
  snprintf(whole, sizeof whole, "%s/%.4000s", directory, path);
  return is_under(whole);
}

static int is_descriptor_under(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = '\0';
  return is_under(path);
}

// Counts a call; true when it is the one that fails.
static int fails(enum Kind kind) {
  const long number = atomic_fetch_add(&num_calls[kind], 1) + 1, at = atol(setting("FAULT_AT"));
  if (at <= 0 || strcmp(setting("FAULT_CALL"), kNames[kind]) != 0) return 0;
  return number == at || (number > at && *setting("FAULT_STAYS") == '1');
}

static int fail(void) {
  errno = EIO;
  for (size_t i = 0; i < sizeof kErrors / sizeof *kErrors; ++i) {
    if (strcmp(setting("FAULT_MODE"), kErrors[i].name) == 0) errno = kErrors[i].number;
  }
  return -1;
}

static int is_short(void) { return strcmp(setting("FAULT_MODE"), "short") == 0; }

ssize_t write(int fd, const void* data, size_t size) {
  if (fd > 2 && is_descriptor_under(fd) && fails(kWrite)) {
    if (!is_short()) return fail();
    size = (size + 1) / 2;
  }
  return NEXT(ssize_t(*)(int, const void*, size_t), "write")(fd, data, size);
}

ssize_t read(int fd, void* data, size_t size) {
  if (fd > 2 && is_descriptor_under(fd) && fails(kRead)) {
    if (!is_short()) return fail();
    size = (size + 1) / 2;
  }
  return NEXT(ssize_t(*)(int, void*, size_t), "read")(fd, data, size);
}

int fsync(int fd) {
  if (is_descriptor_under(fd) && fails(kFsync)) return fail();
  return NEXT(int (*)(int), "fsync")(fd);
}

int rename(const char* from, const char* to) {
  if (is_path_under(to) && fails(kRename)) return fail();
  return NEXT(int (*)(const char*, const char*), "rename")(from, to);
}

int renameat2(int from_dir, const char* from, int to_dir, const char* to, unsigned flags) {
  if (is_path_under(to) && fails(kRename)) return fail();
  return NEXT(int (*)(int, const char*, int, const char*, unsigned), "renameat2")(
      from_dir, from, to_dir, to, flags);
}

static int fails_to_open(const char* path, int flags) {
  if (!is_path_under(path)) return 0;
  atomic_store(&has_begun, 1);
  return fails((flags & O_ACCMODE) == O_RDONLY ? kOpenRead : kOpen);
}

static int opened(const char* name, const char* path, int flags, mode_t mode) {
  if (fails_to_open(path, flags)) return fail();
  return NEXT(int (*)(const char*, int, ...), name)(path, flags, mode);
}

// How the standard library lists directories.
int openat(int dir, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if ((dir == AT_FDCWD || *path == '/') && fails_to_open(path, flags)) return fail();
  return NEXT(int (*)(int, const char*, int, ...), "openat")(dir, path, flags, mode);
}

DIR* opendir(const char* path) {
  if (fails_to_open(path, O_RDONLY)) return fail(), NULL;
  return NEXT(DIR * (*)(const char*), "opendir")(path);
}

void* mmap(void* at, size_t size, int protection, int flags, int fd, off_t offset) {
  if (fd >= 0 && is_descriptor_under(fd) && fails(kMap)) return fail(), MAP_FAILED;
  return NEXT(void* (*)(void*, size_t, int, int, int, off_t), "mmap")(at, size, protection, flags,
                                                                      fd, offset);
}

static int fails_to_allocate(size_t size) {
  if (size < least_bytes || !atomic_load(&has_begun) || !fails(kMalloc)) return 0;
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t size) {
  if (fails_to_allocate(size)) return NULL;
  return NEXT(void* (*)(size_t), "malloc")(size);
}

void* calloc(size_t count, size_t size) {
  if (fails_to_allocate(count * size)) return NULL;
  return NEXT(void* (*)(size_t, size_t), "calloc")(count, size);
}

void* realloc(void* old, size_t size) {
  if (fails_to_allocate(size)) return NULL;
  return NEXT(void* (*)(void*, size_t), "realloc")(old, size);
}

int posix_memalign(void** out, size_t alignment, size_t size) {
  if (fails_to_allocate(size)) return ENOMEM;
  return NEXT(int (*)(void**, size_t, size_t), "posix_memalign")(out, alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  if (fails_to_allocate(size)) return NULL;
  return NEXT(void* (*)(size_t, size_t), "aligned_alloc")(alignment, size);
}

// operator new: jemalloc's does not go through malloc.
static void throw_bad_alloc(void) {
  ((void (*)(void))dlsym(RTLD_DEFAULT, "_ZSt17__throw_bad_allocv"))();
}

void* _Znwm(size_t size) {
  if (fails_to_allocate(size)) throw_bad_alloc();
  return NEXT(void* (*)(size_t), "_Znwm")(size);
}

void* _Znam(size_t size) {
  if (fails_to_allocate(size)) throw_bad_alloc();
  return NEXT(void* (*)(size_t), "_Znam")(size);
}

void* _ZnwmSt11align_val_t(size_t size, size_t alignment) {
  if (fails_to_allocate(size)) throw_bad_alloc();
  return NEXT(void* (*)(size_t, size_t), "_ZnwmSt11align_val_t")(size, alignment);
}

__attribute__((destructor)) static void write_counts(void) {
  const char* path = setting("FAULT_COUNT");
  if (*path == '\0') return;
  FILE* file = fopen(path, "w");
  if (file == NULL) return;
  for (int kind = 0; kind < kNumKinds; ++kind)
    fprintf(file, "%s %ld\n", kNames[kind], atomic_load(&num_calls[kind]));
  fclose(file);
}
