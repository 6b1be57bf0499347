/// Shared parts of the preloaded libraries that stand between a program and its files. The
/// including file defines `opened`, defines _GNU_SOURCE before any header, and is C.
#pragma once
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/// The next function of that name, most often libc's.
#define NEXT(type, name) ((type)dlsym(RTLD_NEXT, name))

/// An environment variable; "" when it is not set.
static const char* setting(const char* name) {
  const char* value = getenv(name);
  return value == NULL ? "" : value;
}

/// True if an absolute path lies below the directory that the environment variable names.
static int is_below(const char* variable, const char* path) {
  const char* directory = setting(variable);
  return *directory != '\0' && strncmp(path, directory, strlen(directory)) == 0;
}

/// Stands for open and open64, whichever `name` says.
static int opened(const char* name, const char* path, int flags, mode_t mode);

#define DEFINE_OPEN(name)                                                  \
  int name(const char* path, int flags, ...) {                             \
    va_list rest;                                                          \
    va_start(rest, flags);                                                 \
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0; \
    va_end(rest);                                                          \
    return opened(#name, path, flags, mode);                               \
  }
DEFINE_OPEN(open)
DEFINE_OPEN(open64)
