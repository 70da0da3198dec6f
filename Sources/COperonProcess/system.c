#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "operon_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <sys/vfs.h>
#include <unistd.h>

// Small bridges to what Swift's Glibc module leaves out.

void operon_process_name_thread(const char *name) {
    (void)pthread_setname_np(pthread_self(), name);
}

void operon_process_wait_semaphore(sem_t *semaphore, const struct timespec *end) {
    while (sem_clockwait(semaphore, CLOCK_MONOTONIC, end) != 0 && errno == EINTR) {}
}

int operon_process_epoll(void) {
    return epoll_create1(EPOLL_CLOEXEC);
}

int operon_process_clock_is_kept(void) {
    struct timex state = {.modes = 0};
    int clock = adjtimex(&state);
    if (clock < 0) return -1;
    return clock != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
}

int operon_process_watch(int epoll, int descriptor, uint64_t data) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = data};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

void operon_process_unwatch(int epoll, int descriptor) {
    (void)epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, NULL);
}

int operon_process_wait(int epoll, uint64_t *data, int max, int milliseconds) {
    enum { EVENTS = 64 };
    struct epoll_event events[EVENTS];
    int count = epoll_wait(epoll, events, max < EVENTS ? max : EVENTS, milliseconds);
    // EINTR; anything else would be a descriptor that is not ours.
    if (count < 0) return 0;
    for (int index = 0; index < count; index++) data[index] = events[index].data.u64;
    return count;
}

int operon_process_pipe(int *reader, int *writer) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    *reader = ends[0];
    *writer = ends[1];
    return 0;
}

int operon_process_is_control_group(const char *path) {
    struct statfs status;
    return statfs(path, &status) == 0 && status.f_type == CGROUP2_SUPER_MAGIC;
}

// A directory in a directory … : deeper ones stay, so that descriptors suffice.
enum { REMOVED_LEVELS_MAX = 256 };

// By descriptors: whoever exchanges a directory for a link meanwhile leads nowhere. Not into what
// somebody mounted there, which is not ours and may not answer.
static void remove_at(int parent, const char *name, const dev_t *device, int levels) {
    // A file as a rule: the walk is for what a process made itself.
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT || levels == 0) return;
    int number = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (number < 0) return;
    struct stat status;
    if (fstat(number, &status) != 0 || (device != NULL && status.st_dev != *device)) {
        (void)close(number);
        return;
    }
    DIR *directory = fdopendir(number);
    if (directory == NULL) {
        (void)close(number);
        return;
    }
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        remove_at(number, entry->d_name, &status.st_dev, levels - 1);
    }
    (void)closedir(directory);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

void operon_process_remove(const char *path) {
    remove_at(AT_FDCWD, path, NULL, REMOVED_LEVELS_MAX);
}

char **operon_process_environment(void) {
    return environ;
}

void operon_process_conceal(void) {
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

char *operon_process_take_variable(const char *name) {
    char *value = getenv(name);
    if (value == NULL) return NULL;
    char *copy = strdup(value);
    // The variable stays, empty: the list of variables is not changed under whoever reads it.
    if (copy != NULL) explicit_bzero(value, strlen(value));
    return copy;
}

int operon_process_processors(void) {
    cpu_set_t processors;
    if (sched_getaffinity(0, sizeof processors, &processors) == 0) return CPU_COUNT(&processors);
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

int operon_process_processor_numbers(int *numbers, int count) {
    cpu_set_t processors;
    if (sched_getaffinity(0, sizeof processors, &processors) != 0) return 0;
    int written = 0;
    for (int number = 0; number < CPU_SETSIZE && written < count; number++) {
        if (CPU_ISSET(number, &processors)) numbers[written++] = number;
    }
    return written;
}

void operon_process_print_lines(void) {
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
}

void operon_process_bound_free_memory(void) {
#ifdef __GLIBC__
    (void)mallopt(M_MMAP_THRESHOLD, 1024 * 1024);
    (void)mallopt(M_TRIM_THRESHOLD, 8 * 1024 * 1024);
#endif
}

void operon_process_give_back_memory(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}
