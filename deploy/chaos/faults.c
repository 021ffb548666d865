/* Faults of a clock and a disk for one process, for tests of a cluster alone: make cluster-chaos puts this library
 * before libc (LD_PRELOAD). Each fault is a number in a file, which may change at any time; without the file there is
 * none:
 *   /faults/clock-ms  how far the clock of the day is ahead, negative: behind
 *   /faults/disk-ms   how much longer each flush to disk takes
 * The clock that only goes forward stays as it is. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS 20

struct fault {
  const char *file;
  _Atomic long value_ms;
  _Atomic long looked_ms;
};

static struct fault clock_fault = {"/faults/clock-ms", 0, 0};
static struct fault disk_fault = {"/faults/disk-ms", 0, 0};

static long now_ms(void) {
  struct timespec now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The file is looked at once in a while only: the clock is asked all the time. */
static long value_of(struct fault *fault) {
  long now = now_ms();
  if (now - fault->looked_ms >= LOOK_MS) {
    char text[24] = {0};
    int file = (int)syscall(SYS_openat, AT_FDCWD, fault->file, O_RDONLY | O_CLOEXEC);
    fault->looked_ms = now;
    if (file >= 0) {
      long length = syscall(SYS_read, file, text, sizeof text - 1);
      syscall(SYS_close, file);
      fault->value_ms = length > 0 ? strtol(text, NULL, 10) : 0;
    } else {
      fault->value_ms = 0;
    }
  }
  return fault->value_ms;
}

static void shift(struct timespec *time) {
  long ahead_ms = value_of(&clock_fault);
  time->tv_sec += ahead_ms / 1000;
  time->tv_nsec += ahead_ms % 1000 * 1000000;
  if (time->tv_nsec >= 1000000000) {
    time->tv_nsec -= 1000000000;
    time->tv_sec++;
  } else if (time->tv_nsec < 0) {
    time->tv_nsec += 1000000000;
    time->tv_sec--;
  }
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  int result = (int)syscall(SYS_clock_gettime, clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    shift(time);
  }
  return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) {
    return -1;
  }
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != NULL) {
    *result = now.tv_sec;
  }
  return now.tv_sec;
}

static void wait_for_disk(void) {
  long delay_ms = value_of(&disk_fault);
  if (delay_ms > 0) {
    struct timespec delay = {delay_ms / 1000, delay_ms % 1000 * 1000000};
    nanosleep(&delay, NULL);
  }
}

int fsync(int file) {
  wait_for_disk();
  return (int)syscall(SYS_fsync, file);
}

int fdatasync(int file) {
  wait_for_disk();
  return (int)syscall(SYS_fdatasync, file);
}
