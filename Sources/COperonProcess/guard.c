#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "operon_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// PR_SET_PDEATHSIG ends the children of a worker that is killed, but not theirs: this process does.
// It finds them by their environment, which every descendant inherits, and not by group or parent,
// which each may leave.

enum { CHUNK_BYTES = 16 * 1024, MARKER_BYTES = 4 * 1024 };

/// Whether an open file contains the marker, read in chunks that overlap by its length.
static int contains(int file, const char *marker, size_t length) {
    static char buffer[MARKER_BYTES + CHUNK_BYTES];
    size_t kept = 0;
    for (;;) {
        ssize_t count = read(file, buffer + kept, CHUNK_BYTES);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return 0;
        size_t held = kept + (size_t)count;
        if (memmem(buffer, held, marker, length) != NULL) return 1;
        kept = held < length - 1 ? held : length - 1;
        memmove(buffer, buffer + held - kept, kept);
    }
}

/// Whether a call failed for want of a descriptor or of memory: it says nothing of the process.
static int is_shortage(int error) {
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

/// Kills a process if it is one of ours. The descriptor comes before the look, so that the signal
/// cannot reach a later process of the same number. Counts as killed if the look could not be made:
/// then another one follows.
static int kill_marked(pid_t process, const char *marker, size_t length) {
    int descriptor = (int)syscall(SYS_pidfd_open, process, 0);
    if (descriptor < 0) return is_shortage(errno);
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/environ", (int)process);
    int killed = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        killed = is_shortage(errno);
    } else {
        if (contains(file, marker, length)) {
            killed = syscall(SYS_pidfd_send_signal, descriptor, SIGKILL, NULL, 0) == 0;
        }
        (void)close(file);
    }
    (void)close(descriptor);
    return killed;
}

/// One look at all processes. Returns how many were killed, at least 1 if the look was not whole.
static int kill_all_marked(const char *marker, size_t length) {
    DIR *processes = opendir("/proc");
    if (processes == NULL) return is_shortage(errno);
    pid_t own = getpid();
    int killed = 0;
    for (struct dirent *entry; (entry = readdir(processes)) != NULL;) {
        char *end;
        long number = strtol(entry->d_name, &end, 10);
        if (*end != 0 || number <= 1 || number > INT_MAX || number == own) continue;
        killed += kill_marked((pid_t)number, marker, length);
    }
    (void)closedir(processes);
    return killed;
}

int operon_process_kill_marked(const char *marker) {
    size_t length = strlen(marker);
    if (length == 0 || length > MARKER_BYTES) return 0;
    return kill_all_marked(marker, length);
}

static void become_guard(int lifeline) {
    // Out of reach of what a terminal or a supervisor sends to the worker's group.
    (void)setsid();
    (void)prctl(PR_SET_NAME, "operon-guard");
    // Its memory is a copy of the worker's.
    operon_process_conceal();
    operon_process_reset_signals();
    // The worker may take its time to end after these.
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    // Nobody must wait for the end of the worker's streams because of us.
    int nothing = open("/dev/null", O_RDWR);
    if (nothing >= 0) {
        for (int standard = 0; standard <= 2; standard++) (void)dup2(nothing, standard);
    }
    operon_process_close_others(lifeline);
}

// What is being forked during one look is found by the next; ends with a look that finds none.
enum { LOOKS_MAX = 500, PAUSE_NANOSECONDS = 10 * 1000 * 1000 };

static void pause_between_looks(void) {
    struct timespec pause = {.tv_nsec = PAUSE_NANOSECONDS};
    (void)nanosleep(&pause, NULL);
}

/// Kills everything in a control group and below it, and removes it once nothing is left.
static void remove_control_group(const char *group) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/cgroup.kill", group);
    if (length < 0 || (size_t)length >= sizeof path) return;
    for (int look = 0; look < LOOKS_MAX; look++) {
        int file = open(path, O_WRONLY | O_CLOEXEC);
        if (file >= 0) {
            // Without success here the group is not empty, and stays.
            ssize_t written = write(file, "1", 1);
            (void)written;
            (void)close(file);
        }
        operon_process_remove(group);
        if (access(group, F_OK) != 0) return;
        pause_between_looks();
    }
}

static _Noreturn void guard(
    const char *marker, const char *directory, const char *control_group, int lifeline) {
    become_guard(lifeline);
    char ignored;
    ssize_t count;
    do {
        count = read(lifeline, &ignored, 1);
    } while (count > 0 || (count < 0 && errno == EINTR));

    for (int look = 0; look < LOOKS_MAX && operon_process_kill_marked(marker) > 0; look++) {
        pause_between_looks();
    }
    if (control_group != NULL) remove_control_group(control_group);
    operon_process_remove(directory);
    _exit(0);
}

pid_t operon_process_guard(
    const char *marker, const char *directory, const char *control_group, int *lifeline) {
    size_t length = strlen(marker);
    if (length == 0 || length > MARKER_BYTES) {
        errno = EINVAL;
        return -1;
    }
    int reader, writer;
    if (operon_process_pipe(&reader, &writer) != 0) return -1;
    // `fork`, because glibc leaves the child with a usable `malloc` even when other threads run.
    pid_t process = fork();
    if (process == 0) guard(marker, directory, control_group, reader);
    int fork_error = errno;
    (void)close(reader);
    if (process < 0) {
        (void)close(writer);
        errno = fork_error;
        return -1;
    }
    *lifeline = writer;
    return process;
}

void operon_process_join(pid_t process) {
    while (waitpid(process, NULL, 0) < 0 && errno == EINTR) {
    }
}
