/* Stands between a process and the wall clock (LD_PRELOAD): adds as many seconds as the file named by
   WALL_CLOCK_OFFSET says, an 8-byte integer that may change at any time. All other clocks go on. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *offset;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("WALL_CLOCK_OFFSET");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  void *seen = file < 0 ? MAP_FAILED : mmap(NULL, 8, PROT_READ, MAP_SHARED, file, 0);
  if (seen != MAP_FAILED) offset = seen;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int failed = syscall(SYS_clock_gettime, clock, now);
  int wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (!failed && wall && offset) now->tv_sec += *offset;
  return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
  struct timespec told;
  int failed = clock_gettime(CLOCK_REALTIME, &told);
  now->tv_sec = told.tv_sec;
  now->tv_usec = told.tv_nsec / 1000;
  return failed;
}

time_t time(time_t *now) {
  struct timespec told;
  clock_gettime(CLOCK_REALTIME, &told);
  if (now) *now = told.tv_sec;
  return told.tv_sec;
}
