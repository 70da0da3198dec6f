#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "operon_process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// What the sources of triggers ask the kernel.

int operon_process_watch_once(int epoll, int descriptor, uint64_t data) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = data};
    if (epoll_ctl(epoll, EPOLL_CTL_MOD, descriptor, &event) == 0) return 0;
    if (errno != ENOENT) return -1;
    return epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

int operon_process_look(const char *path, operon_process_file *file) {
    struct statx status;
    unsigned mask = STATX_BASIC_STATS | STATX_BTIME;
    int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
    if (statx(AT_FDCWD, path, flags, mask, &status) != 0) return -1;
    *file = (operon_process_file){
        .inode = status.stx_ino,
        .links = status.stx_nlink,
        .bytes = status.stx_size,
        .is_regular = S_ISREG(status.stx_mode),
        .written = {status.stx_mtime.tv_sec, status.stx_mtime.tv_nsec},
        .changed = {status.stx_ctime.tv_sec, status.stx_ctime.tv_nsec},
        .has_birth = (status.stx_mask & STATX_BTIME) != 0,
        .born = {status.stx_btime.tv_sec, status.stx_btime.tv_nsec},
    };
    return 0;
}

int operon_process_open(pid_t process) {
    // Closed on exec; since Linux 5.3.
    return (int)syscall(SYS_pidfd_open, process, 0);
}

// From linux/pidfd.h of Linux 6.15, which is newer than the headers of many systems. The kernel
// copies as much as both sides know (PIDFD_INFO_SIZE_VER0).
struct pidfd_information {
    uint64_t mask;
    uint64_t cgroup;
    uint32_t numbers[11];
    int32_t exit_code;
};
enum { PIDFD_INFORMATION_EXIT = 1 << 3 };
#define PIDFD_INFORMATION _IOWR(0xFF, 11, struct pidfd_information)

static operon_process_end decoded(int status) {
    operon_process_end end = {.state = 1};
    if (WIFSIGNALED(status)) {
        end.signaled = 1;
        end.value = WTERMSIG(status);
    } else {
        end.value = WEXITSTATUS(status);
    }
    return end;
}

operon_process_end operon_process_observe(int descriptor, pid_t process) {
    siginfo_t information = {.si_pid = 0};
    int flags = WEXITED | WNOHANG | WNOWAIT;
    if (waitid(P_PID, (id_t)process, &information, flags) == 0 && information.si_pid == process) {
        operon_process_end end = {.state = 1};
        end.signaled = information.si_code != CLD_EXITED;
        end.value = information.si_status;
        return end;
    }
    struct pidfd_information known = {.mask = PIDFD_INFORMATION_EXIT};
    if (ioctl(descriptor, PIDFD_INFORMATION, &known) != 0) {
        return (operon_process_end){.state = -1, .error = errno};
    }
    if ((known.mask & PIDFD_INFORMATION_EXIT) == 0) return (operon_process_end){.state = 0};
    return decoded(known.exit_code);
}
