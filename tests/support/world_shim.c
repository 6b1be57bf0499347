// A world that does not hold still, LD_PRELOAD=…/librematch_world_shim.so: the clock of the day
// jumps back and forth by a day with every look at it, the machine has another name each time, and
// numbers are written with a comma (SHIM_LOCALE, a locale that LOCPATH holds).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <locale.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static atomic_long num_looks;

static long jump_s(void) { return (atomic_fetch_add(&num_looks, 1) % 2 == 0 ? -1 : 1) * 86400L; }

int clock_gettime(clockid_t clock, struct timespec* now) {
  const int result =
      ((int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime"))(clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += jump_s();
  return result;
}

time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != NULL) *out = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  (void)zone;
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

int gethostname(char* name, size_t size) {
  snprintf(name, size, "host-%ld", atomic_fetch_add(&num_looks, 1));
  return 0;
}

__attribute__((constructor)) static void choose_locale(void) {
  const char* wanted = getenv("SHIM_LOCALE");
  if (wanted == NULL) return;
  if (setlocale(LC_ALL, wanted) == NULL || *localeconv()->decimal_point != ',') {
    fprintf(stderr, "no locale %s with a decimal comma\n", wanted);
    exit(97);
  }
}
