// A library that is loaded into a program with LD_PRELOAD and sets its wall clock: by as many
// nanoseconds as the file $STEPPED_CLOCK has, in its first eight bytes, which may change at any
// time. Clocks that count from the start of the machine, and timers, stay as they are.
//
// libfaketime does the same and more: it also shifts timerfd_settime(2) with absolute times of
// CLOCK_MONOTONIC, whatever it is told (0.9.10), and on those rest all timers of a Swift program.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t second = 1000000000;
static const _Atomic int64_t *offset;

__attribute__((constructor)) static void find_offset(void) {
    const char *path = getenv("STEPPED_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) abort();
    void *page = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) abort();
    offset = page;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    long result = syscall(SYS_clock_gettime, clock, now);
    // Before the constructor has run there is no offset.
    if (result != 0 || !offset || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return (int)result;
    int64_t moment = now->tv_sec * second + now->tv_nsec + *offset;
    now->tv_sec = moment / second;
    now->tv_nsec = moment % second;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec moment;
    int result = clock_gettime(CLOCK_REALTIME, &moment);
    if (result == 0) *now = (struct timeval){moment.tv_sec, moment.tv_nsec / 1000};
    return result;
}

time_t time(time_t *now) {
    struct timespec moment;
    if (clock_gettime(CLOCK_REALTIME, &moment) != 0) return (time_t)-1;
    if (now) *now = moment.tv_sec;
    return moment.tv_sec;
}
