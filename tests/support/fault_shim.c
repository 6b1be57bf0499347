// Makes one file operation of a program fail: LD_PRELOAD=…/librematch_fault_shim.so with
//
//   FAULT_UNDER  directory; operations on other files are neither counted nor touched
//   FAULT_CALL   write, fsync, rename or open (for writing)
//   FAULT_AT     which of those calls fails, counted from 1; 0 = none
//   FAULT_MODE   EIO, ENOSPC, EDQUOT, EINTR, or short (a write takes half of what it is given)
//   FAULT_STAYS  1: every later call fails too, as on a disk that stays full
//   FAULT_COUNT  file that gets the number of such calls when the program ends
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim.h"

static atomic_long num_calls;

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

static int error_number(void) {
  const char* mode = setting("FAULT_MODE");
  if (strcmp(mode, "ENOSPC") == 0) return ENOSPC;
  if (strcmp(mode, "EDQUOT") == 0) return EDQUOT;
  if (strcmp(mode, "EINTR") == 0) return EINTR;
  return EIO;
}

// Counts a call; true when it is the one that fails.
static int fails(const char* call) {
  if (strcmp(setting("FAULT_CALL"), call) != 0) return 0;
  const long number = atomic_fetch_add(&num_calls, 1) + 1, at = atol(setting("FAULT_AT"));
  return at > 0 && (number == at || (number > at && *setting("FAULT_STAYS") == '1'));
}

static int fail(void) {
  errno = error_number();
  return -1;
}


ssize_t write(int fd, const void* data, size_t size) {
  if (fd > 2 && is_descriptor_under(fd) && fails("write")) {
    if (strcmp(setting("FAULT_MODE"), "short") != 0) return fail();
    size = (size + 1) / 2;
  }
  return NEXT(ssize_t(*)(int, const void*, size_t), "write")(fd, data, size);
}

int fsync(int fd) {
  if (is_descriptor_under(fd) && fails("fsync")) return fail();
  return NEXT(int (*)(int), "fsync")(fd);
}

int rename(const char* from, const char* to) {
  if (is_path_under(to) && fails("rename")) return fail();
  return NEXT(int (*)(const char*, const char*), "rename")(from, to);
}

int renameat2(int from_dir, const char* from, int to_dir, const char* to, unsigned flags) {
  if (is_path_under(to) && fails("rename")) return fail();
  return NEXT(int (*)(int, const char*, int, const char*, unsigned), "renameat2")(from_dir, from, to_dir, to, flags);
}

static int opened(const char* name, const char* path, int flags, mode_t mode) {
  if ((flags & O_ACCMODE) != O_RDONLY && is_path_under(path) && fails("open")) return fail();
  return NEXT(int (*)(const char*, int, ...), name)(path, flags, mode);
}

__attribute__((destructor)) static void write_count(void) {
  const char* path = setting("FAULT_COUNT");
  if (*path == '\0') return;
  FILE* file = fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "%ld\n", atomic_load(&num_calls));
  fclose(file);
}
