#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "operon_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef __linux__
#error "Operon runs processes on Linux: it relies on pidfd, epoll and PR_SET_PDEATHSIG."
#endif

#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x00001000
#endif

// Enough for the directory buffer below and the C library's own frames; glibc's posix_spawn takes
// 32 KiB for the same purpose. The calling thread must have it to spare.
enum { STACK_BYTES = 64 * 1024, FIRST_FREE_DESCRIPTOR = 3 };

// Shared between parent and child, which runs in the same memory while the parent's thread waits:
// so a failure needs no pipe to be reported.
typedef struct child_context {
    const operon_process_request *request;
    pid_t parent;
    int input;
    int output;
    int error_output;
    volatile operon_process_step step;
    volatile int error;
} child_context;

// MARK: - In the child

// Bare system calls without instrumentation from here on: the wrappers of the C library may be
// interposed by a sanitizer, whose books the child would change in its parent's memory.
#if defined(__clang__)
#define IN_CHILD __attribute__((disable_sanitizer_instrumentation))
#else
#define IN_CHILD __attribute__((no_sanitize_address, no_sanitize_thread))
#endif

IN_CHILD static _Noreturn void fail(child_context *context, operon_process_step step, int error) {
    context->error = error;
    context->step = step;
    for (;;) (void)syscall(SYS_exit_group, 127);
}

// Says what the child is about to do, to whoever watches a start that takes long.
IN_CHILD static void reach(const operon_process_request *request, operon_process_step step) {
    if (request->progress != NULL) {
        __atomic_store_n(&request->progress->step, (int)step, __ATOMIC_RELAXED);
    }
}

// What the parent handles or ignores would otherwise hold here: a handler would run on the
// parent's memory, and "ignored" survives execve.
IN_CHILD void operon_process_reset_signals(void) {
    // The C library's `sigaction` refuses the two signals it uses itself, which may be ignored as
    // well: hence the bare system call. Its structure differs between architectures, but all zero
    // means the default action everywhere.
    const unsigned long standard[8] = {0};
    enum { SIGNALS = 64, MASK_BYTES = SIGNALS / 8 };
    for (int number = 1; number <= SIGNALS; number++) {
        // SIGKILL and SIGSTOP are refused, and need no reset.
        (void)syscall(SYS_rt_sigaction, number, standard, NULL, MASK_BYTES);
    }
    const unsigned long none = 0;
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, MASK_BYTES);
}

// For kernels before 5.9: reads /proc/self/fd with the bare system call, because `opendir`
// allocates.
IN_CHILD static int close_listed_descriptors(int but) {
    int directory = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/fd",
                                 O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return -1;
    _Alignas(struct dirent64) char buffer[4096];
    // Closing while reading may skip entries, so passes repeat until one closes nothing.
    for (int closed = 1; closed != 0;) {
        closed = 0;
        if (syscall(SYS_lseek, directory, 0, SEEK_SET) < 0) break;
        for (;;) {
            long count = syscall(SYS_getdents64, directory, buffer, sizeof buffer);
            if (count <= 0) break;
            for (long offset = 0; offset < count;) {
                const struct dirent64 *entry = (const struct dirent64 *)(buffer + offset);
                offset += entry->d_reclen;
                int descriptor = 0;
                const char *digit = entry->d_name;
                for (; *digit >= '0' && *digit <= '9'; digit++) {
                    descriptor = descriptor * 10 + (*digit - '0');
                }
                if (*digit != 0 || digit == entry->d_name) continue;
                if (descriptor < FIRST_FREE_DESCRIPTOR || descriptor == directory) continue;
                if (descriptor == but) continue;
                if (syscall(SYS_close, descriptor) == 0) closed = 1;
            }
        }
    }
    (void)syscall(SYS_close, directory);
    return 0;
}

IN_CHILD static int close_range_of(unsigned first, unsigned last) {
    if (first > last) return 0;
#ifdef SYS_close_range
    return (int)syscall(SYS_close_range, first, last, 0);
#else
    errno = ENOSYS;
    return -1;
#endif
}

IN_CHILD void operon_process_close_others(int but) {
    if (but < FIRST_FREE_DESCRIPTOR) {
        if (close_range_of(FIRST_FREE_DESCRIPTOR, UINT_MAX) == 0) return;
    } else if (close_range_of(FIRST_FREE_DESCRIPTOR, (unsigned)but - 1) == 0
               && close_range_of((unsigned)but + 1, UINT_MAX) == 0) {
        return;
    }
    if (close_listed_descriptors(but) == 0) return;
    struct rlimit limit;
    if (syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit) != 0) return;
    for (rlim_t descriptor = FIRST_FREE_DESCRIPTOR; descriptor < limit.rlim_cur; descriptor++) {
        if ((int)descriptor != but) (void)syscall(SYS_close, (int)descriptor);
    }
}

// Never above what the parent itself may have, which needs a privilege.
IN_CHILD static int limit(int resource, uint64_t soft, uint64_t hard) {
    struct rlimit64 current;
    if (syscall(SYS_prlimit64, 0, resource, NULL, &current) != 0) return -1;
    if (hard > current.rlim_max) hard = current.rlim_max;
    if (soft > hard) soft = hard;
    const struct rlimit64 wanted = {.rlim_cur = soft, .rlim_max = hard};
    return (int)syscall(SYS_prlimit64, 0, resource, &wanted, NULL);
}

// The soft limit of descriptors that this process was started with; 0: it was not raised. Written
// before the first child.
static rlim_t descriptors_before = 0;

// A program may expect the usual limit, as those that call select(2) do.
IN_CHILD static void restore_descriptors(void) {
    if (descriptors_before == 0) return;
    struct rlimit64 wanted;
    if (syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &wanted) != 0) return;
    if (descriptors_before >= wanted.rlim_max) return;
    wanted.rlim_cur = descriptors_before;
    (void)syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &wanted, NULL);
}

// As `execvp`: what is absent is passed over, what may not be executed is remembered.
IN_CHILD static int execute(const operon_process_request *request) {
    int error = ENOENT;
    for (const char *const *path = request->candidates; *path != NULL; path++) {
        (void)syscall(SYS_execve, *path, request->arguments, request->environment);
        switch (errno) {
        case EACCES:
            error = EACCES;
            break;
        case ENOENT:
        case ENOTDIR:
        case ESTALE:
        case ENODEV:
        case ETIMEDOUT:
            break;
        default:
            return errno;
        }
    }
    return error;
}

// The kernel takes the death signal away with the old user.
IN_CHILD static int become(const operon_process_user *user, pid_t parent) {
    if (syscall(SYS_setgroups, user->group_count, user->groups) != 0
        || syscall(SYS_setresgid, user->group, user->group, user->group) != 0
        || syscall(SYS_setresuid, user->user, user->user, user->user) != 0
        || syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) {
        return errno;
    }
    return syscall(SYS_getppid) == parent ? 0 : ESRCH;
}

IN_CHILD static int child_main(void *argument) {
    child_context *context = argument;
    const operon_process_request *request = context->request;

    operon_process_reset_signals();
    if (syscall(SYS_setpgid, 0, 0) != 0) fail(context, OPERON_PROCESS_PREPARE, errno);
    if (syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) {
        fail(context, OPERON_PROCESS_PREPARE, errno);
    }
    // A parent that died before the line above sends no signal any more.
    if (syscall(SYS_getppid) != context->parent) fail(context, OPERON_PROCESS_PREPARE, ESRCH);

    // While its descriptor is still open. "0" is the writer itself.
    if (request->enters_control_group
        && syscall(SYS_write, request->control_group, "0", 1) != 1) {
        fail(context, OPERON_PROCESS_GROUP, errno);
    }

    // The sources are all above 2, so none overwrites a later one's source; the copies are not
    // closed on exec.
    if (syscall(SYS_dup3, context->input, STDIN_FILENO, 0) < 0
        || syscall(SYS_dup3, context->output, STDOUT_FILENO, 0) < 0
        || syscall(SYS_dup3, context->error_output, STDERR_FILENO, 0) < 0) {
        fail(context, OPERON_PROCESS_DESCRIPTORS, errno);
    }
    operon_process_close_others(-1);
    restore_descriptors();
    if (request->user != NULL) {
        int error = become(request->user, context->parent);
        if (error != 0) fail(context, OPERON_PROCESS_USER, error);
    }
    if (request->no_new_privileges && syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        fail(context, OPERON_PROCESS_PREPARE, errno);
    }

    // From here on a file system that hangs may hold the child for ever.
    reach(request, OPERON_PROCESS_DIRECTORY);
    if (request->directory != NULL && syscall(SYS_chdir, request->directory) != 0) {
        fail(context, OPERON_PROCESS_DIRECTORY, errno);
    }
    if (request->niceness != 0) {
        // Best effort: lowering needs a privilege, and the operation runs either way.
        // The kernel answers 20 - niceness, so that no answer is negative.
        long own = syscall(SYS_getpriority, PRIO_PROCESS, 0);
        if (own > 0) {
            (void)syscall(SYS_setpriority, PRIO_PROCESS, 0, 20 - own + request->niceness);
        }
    }
    if (request->processor_words != 0) {
        // Best effort: processors that the machine has lost meanwhile are no reason to fail.
        (void)syscall(
            SYS_sched_setaffinity, 0, request->processor_words * sizeof(uint64_t),
            request->processors);
    }
    if (request->dumps_no_core && limit(RLIMIT_CORE, 0, 0) != 0) {
        fail(context, OPERON_PROCESS_LIMITS, errno);
    }
    // Last, because until then the child is as large as its parent.
    if ((request->memory != 0 && limit(RLIMIT_AS, request->memory, request->memory) != 0)
        || (request->cpu_seconds != 0
            && limit(RLIMIT_CPU, request->cpu_seconds, request->cpu_seconds_at_most) != 0)) {
        fail(context, OPERON_PROCESS_LIMITS, errno);
    }
    reach(request, OPERON_PROCESS_EXECUTE);
    fail(context, OPERON_PROCESS_EXECUTE, execute(request));
}

// MARK: - In the parent

// The name that sanitizers do not interpose: theirs takes every child for one with memory of its
// own.
extern int __clone(int (*function)(void *), void *stack, int flags, void *argument, ...);

// Moves a descriptor out of the way of the child's 0, 1 and 2, which happens when the worker was
// started with one of them closed. Sets `copied` if the result must be closed again.
static int above_standard(int descriptor, int *copied) {
    *copied = -1;
    if (descriptor >= FIRST_FREE_DESCRIPTOR || descriptor < 0) return descriptor;
    *copied = fcntl(descriptor, F_DUPFD_CLOEXEC, FIRST_FREE_DESCRIPTOR);
    return *copied;
}

static operon_process_spawned clone_child(child_context *context) {
    operon_process_spawned result = {.process = 0, .descriptor = -1};
    // Within the frame of this thread, which sleeps meanwhile: mapping and unmapping memory for
    // each child would interrupt every other core that runs this process.
    _Alignas(16) char stack[STACK_BYTES];

    // No handler of ours may run in the child before it has reset them.
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    // The kernel writes the descriptor before the child runs, and this thread waits for the child:
    // so others can signal it meanwhile.
    int own_descriptor = -1;
    operon_process_progress *progress = context->request->progress;
    int *descriptor = progress != NULL ? &progress->descriptor : &own_descriptor;
    pid_t process = __clone(child_main, stack + STACK_BYTES,
                            CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, context, descriptor);
    int clone_error = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);

    if (process < 0) {
        result.step = OPERON_PROCESS_CLONE;
        result.error = clone_error;
        return result;
    }
    result.descriptor = *descriptor;
    if (context->step != OPERON_PROCESS_STARTED) {
        operon_process_join(process);
        result.step = context->step;
        result.error = context->error;
        return result;
    }
    result.process = process;
    return result;
}

operon_process_spawned operon_process_spawn(const operon_process_request *request) {
    child_context context = {.request = request, .parent = getpid()};
    int copies[3];
    context.input = above_standard(request->input, &copies[0]);
    context.output = above_standard(request->output, &copies[1]);
    context.error_output = above_standard(request->error, &copies[2]);

    operon_process_spawned result;
    if (context.input < 0 || context.output < 0 || context.error_output < 0) {
        result = (operon_process_spawned){
            .descriptor = -1, .step = OPERON_PROCESS_DESCRIPTORS, .error = errno};
    } else {
        result = clone_child(&context);
    }
    for (int index = 0; index < 3; index++) {
        if (copies[index] >= 0) (void)close(copies[index]);
    }
    return result;
}

operon_process_step operon_process_reached(const operon_process_progress *progress) {
    return (operon_process_step)__atomic_load_n(&progress->step, __ATOMIC_RELAXED);
}

int operon_process_interrupt(const operon_process_progress *progress) {
    int descriptor = __atomic_load_n(&progress->descriptor, __ATOMIC_RELAXED);
    if (descriptor < 0) return -1;
    return (int)syscall(SYS_pidfd_send_signal, descriptor, SIGKILL, NULL, 0);
}

uint64_t operon_process_raise_descriptors(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
    if (limit.rlim_cur >= limit.rlim_max) return limit.rlim_cur;
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return before;
    descriptors_before = before;
    return limit.rlim_cur;
}

static uint64_t nanoseconds(struct timeval time) {
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

operon_process_end operon_process_collect(pid_t process) {
    operon_process_end end = {0};
    int status = 0;
    struct rusage usage = {0};
    pid_t collected;
    do {
        collected = wait4(process, &status, WNOHANG, &usage);
    } while (collected < 0 && errno == EINTR);
    if (collected < 0) {
        end.state = -1;
        end.error = errno;
        return end;
    }
    if (collected == 0) return end;
    end.state = 1;
    end.signaled = WIFSIGNALED(status) ? 1 : 0;
    end.value = end.signaled ? WTERMSIG(status) : WEXITSTATUS(status);
    end.cpu_nanoseconds = nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime);
    return end;
}

void operon_process_await(pid_t process) {
    siginfo_t end;
    while (waitid(P_PID, (id_t)process, &end, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
    }
}

void operon_process_keep_children(void) {
    struct sigaction current;
    if (sigaction(SIGCHLD, NULL, &current) != 0) return;
    int ignored = (current.sa_flags & SA_SIGINFO) == 0 && current.sa_handler == SIG_IGN;
    if (!ignored && (current.sa_flags & SA_NOCLDWAIT) == 0) return;
    if (ignored) current.sa_handler = SIG_DFL;
    current.sa_flags &= ~SA_NOCLDWAIT;
    (void)sigaction(SIGCHLD, &current, NULL);
}
