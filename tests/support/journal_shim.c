// Writes down what a program does to the files below a directory, in order:
// LD_PRELOAD=…/librematch_journal_shim.so with
//
//   JOURNAL_UNDER  directory; operations on other files are not written down
//   JOURNAL_FILE   gets the journal (created; not below that directory)
//
// A record is a line "OPERATION<tab>NUMBER<tab>SIZE<tab>PATH<tab>SECOND PATH", then SIZE bytes.
// Only operations that succeeded are there.
//   write     NUMBER offset; the bytes       truncate  NUMBER new size
//   create    an empty file                  unlink    a file
//   mkdir                                    rmdir     a directory
//   sync      a file or directory
//   rename    to SECOND PATH                 exchange  with SECOND PATH
// tests/e2e/file_journal.h reads it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim.h"

enum { kPathSize = 4096 };

// Held around an operation and its record, so that their orders agree.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int is_under(const char* path) { return is_below("JOURNAL_UNDER", path); }

// The absolute path of `path` relative to the open directory `fd`; false when it is not below the
// directory.
static int below(int fd, const char* path, char* whole) {
  char base[kPathSize] = "", link[64];
  if (*path != '/') {
    snprintf(link, sizeof link, fd == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, base, sizeof base - 2);
    if (length < 0) return 0;
    base[length] = '/';
    base[length + 1] = '\0';
  }
  snprintf(whole, 2 * kPathSize, "%s%s", base, path);
  return is_under(whole);
}

static int descriptor_below(int fd, char* path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, kPathSize - 1);
  if (length < 0) return 0;
  path[length] = '\0';
  return is_under(path) && strstr(path, " (deleted)") == NULL;
}

static void put(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t count = NEXT(ssize_t(*)(int, const void*, size_t), "write")(fd, data, size);
    if (count < 0) abort();
    data += count;
    size -= (size_t)count;
  }
}

static void record(const char* operation, long long number, const char* path, const char* second,
                   const void* data, size_t size) {
  static int journal = -1;
  if (journal < 0)
    journal = NEXT(int (*)(const char*, int, ...), "open")(
        setting("JOURNAL_FILE"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (journal < 0) abort();
  char line[4 * kPathSize];
  const int length =
      snprintf(line, sizeof line, "%s\t%lld\t%zu\t%s\t%s\n", operation, number, size, path, second);
  put(journal, line, (size_t)length);
  put(journal, data, size);
}

// Runs `call`, and records when its result says that it has worked.
#define RECORDED(is_ours, call, operation, path, second)                     \
  {                                                                          \
    pthread_mutex_lock(&lock);                                               \
    const int result = call, error_number = errno;                           \
    if (result >= 0 && (is_ours)) record(operation, 0, path, second, "", 0); \
    pthread_mutex_unlock(&lock);                                             \
    errno = error_number;                                                    \
    return result;                                                           \
  }

ssize_t write(int fd, const void* data, size_t size) {
  char path[kPathSize];
  if (fd <= 2 || !descriptor_below(fd, path))
    return NEXT(ssize_t(*)(int, const void*, size_t), "write")(fd, data, size);
  pthread_mutex_lock(&lock);
  const ssize_t count = NEXT(ssize_t(*)(int, const void*, size_t), "write")(fd, data, size);
  const int error_number = errno;
  if (count > 0)
    record("write", (long long)lseek(fd, 0, SEEK_CUR) - count, path, "", data, (size_t)count);
  pthread_mutex_unlock(&lock);
  errno = error_number;
  return count;
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  char path[kPathSize];
  const int is_ours = descriptor_below(fd, path);
  pthread_mutex_lock(&lock);
  const ssize_t count =
      NEXT(ssize_t(*)(int, const void*, size_t, off_t), "pwrite")(fd, data, size, offset);
  const int error_number = errno;
  if (count > 0 && is_ours) record("write", offset, path, "", data, (size_t)count);
  pthread_mutex_unlock(&lock);
  errno = error_number;
  return count;
}

int ftruncate(int fd, off_t size) {
  char path[kPathSize];
  const int is_ours = descriptor_below(fd, path);
  pthread_mutex_lock(&lock);
  const int result = NEXT(int (*)(int, off_t), "ftruncate")(fd, size), error_number = errno;
  if (result == 0 && is_ours) record("truncate", size, path, "", "", 0);
  pthread_mutex_unlock(&lock);
  errno = error_number;
  return result;
}

int fsync(int fd) {
  char path[kPathSize];
  const int is_ours = descriptor_below(fd, path);
  RECORDED(is_ours, NEXT(int (*)(int), "fsync")(fd), "sync", path, "")
}

int fdatasync(int fd) {
  char path[kPathSize];
  const int is_ours = descriptor_below(fd, path);
  RECORDED(is_ours, NEXT(int (*)(int), "fdatasync")(fd), "sync", path, "")
}

static int opened(const char* name, const char* path, int flags, mode_t mode) {
  char whole[2 * kPathSize];
  struct stat info;
  const int is_ours = (flags & O_ACCMODE) != O_RDONLY && below(AT_FDCWD, path, whole);
  if (!is_ours) return NEXT(int (*)(const char*, int, ...), name)(path, flags, mode);
  const int was_there = stat(path, &info) == 0;
  if (!was_there)
    RECORDED(1, NEXT(int (*)(const char*, int, ...), name)(path, flags, mode), "create", whole, "")
  const int is_cut = (flags & O_TRUNC) != 0 && info.st_size > 0;
  RECORDED(is_cut, NEXT(int (*)(const char*, int, ...), name)(path, flags, mode), "truncate", whole,
           "")
}

int mkdir(const char* path, mode_t mode) {
  char whole[2 * kPathSize];
  const int is_ours = below(AT_FDCWD, path, whole);
  RECORDED(is_ours, NEXT(int (*)(const char*, mode_t), "mkdir")(path, mode), "mkdir", whole, "")
}

// As an empty file: what a link leads to is of no interest here.
int symlink(const char* target, const char* path) {
  char whole[2 * kPathSize];
  const int is_ours = below(AT_FDCWD, path, whole);
  RECORDED(is_ours, NEXT(int (*)(const char*, const char*), "symlink")(target, path), "create",
           whole, "")
}

int renameat2(int from_dir, const char* from, int to_dir, const char* to, unsigned flags) {
  char old_path[2 * kPathSize], new_path[2 * kPathSize];
  const int is_ours = below(to_dir, to, new_path) && below(from_dir, from, old_path);
  RECORDED(is_ours,
           NEXT(int (*)(int, const char*, int, const char*, unsigned), "renameat2")(
               from_dir, from, to_dir, to, flags),
           (flags & RENAME_EXCHANGE) != 0 ? "exchange" : "rename", old_path, new_path)
}

int rename(const char* from, const char* to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }

int unlinkat(int directory, const char* path, int flags) {
  char whole[2 * kPathSize];
  const int is_ours = below(directory, path, whole);
  RECORDED(is_ours, NEXT(int (*)(int, const char*, int), "unlinkat")(directory, path, flags),
           (flags & AT_REMOVEDIR) != 0 ? "rmdir" : "unlink", whole, "")
}

int unlink(const char* path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char* path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int remove(const char* path) {
  const int result = unlink(path);
  return result == 0 || errno != EISDIR ? result : rmdir(path);
}
