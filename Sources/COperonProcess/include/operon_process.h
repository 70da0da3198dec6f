#ifndef OPERON_PROCESS_H
#define OPERON_PROCESS_H

#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>
// Swift's Glibc module does not have it.
#include <sys/eventfd.h>
#include <sys/types.h>
#include <time.h>

/// The commit and its date of which this is built, for `--version`; empty: nobody said.
const char *operon_build(void);

// What happens between the birth of a child and its program. The child shares the memory of its
// parent until `execve`, so nothing here allocates, locks or calls Swift.

/// Where a spawn stopped.
typedef enum operon_process_step {
    OPERON_PROCESS_STARTED = 0,
    /// No child came to be: no process or no memory left.
    OPERON_PROCESS_CLONE,
    /// The child could not become what it should be: its group, its parent's death signal, or the
    /// parent died meanwhile.
    OPERON_PROCESS_PREPARE,
    /// It could not enter its control group.
    OPERON_PROCESS_GROUP,
    /// Its standard input, output or error could not be set.
    OPERON_PROCESS_DESCRIPTORS,
    /// The directory to start in.
    OPERON_PROCESS_DIRECTORY,
    /// The user that it runs as.
    OPERON_PROCESS_USER,
    /// What it may use of the machine.
    OPERON_PROCESS_LIMITS,
    /// No candidate could be executed.
    OPERON_PROCESS_EXECUTE,
} operon_process_step;

/// How far a start has come, for other threads to look at while it lasts: a file system that does
/// not answer holds it for as long as that lasts.
typedef struct operon_process_progress {
    /// A descriptor of the child; -1 before there is one.
    int descriptor;
    /// The `operon_process_step` that the child is at.
    int step;
} operon_process_progress;

/// A user of the system with the groups that it has at login. All memory is its own.
typedef struct operon_process_user {
    char *name;
    /// The home directory.
    char *home;
    uid_t user;
    gid_t group;
    gid_t *groups;
    size_t group_count;
} operon_process_user;

/// A process to start. All memory is the caller's and is read until the call returns.
typedef struct operon_process_request {
    /// Paths tried in turn, as `execvp` tries those of PATH. Ends with NULL.
    const char *const *candidates;
    /// The argument vector, with the name the program is called by first. Ends with NULL.
    char *const *arguments;
    /// `NAME=value`. Ends with NULL.
    char *const *environment;
    /// NULL: where the parent is.
    const char *directory;
    /// Descriptors that become 0, 1 and 2. Every other one is closed.
    int input;
    int output;
    int error;
    /// Whether it leaves the control group of its parent: 1 or 0.
    int enters_control_group;
    /// The file `cgroup.procs` of the control group that it then enters, open for writing.
    int control_group;
    /// Added to the parent's niceness, as far as allowed.
    int niceness;
    /// Address space in bytes (RLIMIT_AS); 0: as much as the parent may have.
    uint64_t memory;
    /// Seconds of CPU time until SIGXCPU and until SIGKILL (RLIMIT_CPU); 0: as the parent.
    uint64_t cpu_seconds;
    uint64_t cpu_seconds_at_most;
    /// Whether the system writes no core file of it (RLIMIT_CORE): 1 or 0.
    int dumps_no_core;
    /// Whether it and what it starts can get no more rights by executing a program
    /// (PR_SET_NO_NEW_PRIVS): 1 or 0.
    int no_new_privileges;
    /// The user that it becomes before it enters its directory; NULL: that of the parent.
    const operon_process_user *user;
    /// Bits of the processors that it may use, and how many words of 64 there are; 0: those of the
    /// parent.
    const uint64_t *processors;
    size_t processor_words;
    /// NULL, or where the start is noted, with its descriptor -1.
    operon_process_progress *progress;
} operon_process_request;

typedef struct operon_process_spawned {
    /// 0 unless started. Also the number of its process group.
    pid_t process;
    /// A descriptor that becomes readable when the process has ended (pidfd_open(2)); -1 if there
    /// was never a child. The caller closes it, also when the start failed.
    int descriptor;
    /// What failed, and its `errno`.
    operon_process_step step;
    int error;
} operon_process_spawned;

/// Starts a process that dies with the calling thread (PR_SET_PDEATHSIG): call it on a thread that
/// lives as long as the worker does. Returns when the program runs or could not be run.
///
/// The child leads its own process group, has no signal blocked, ignored or handled, and no
/// descriptor but the three.
operon_process_spawned operon_process_spawn(const operon_process_request *request);

/// Looks up a user. 0, and the caller frees it; or an `errno`: ENOENT if there is no such user.
int operon_process_find_user(const char *name, operon_process_user *user);

void operon_process_free_user(operon_process_user *user);

/// From here on the calling thread, and no other one, uses files with the rights of this user
/// (setfsuid(2)). 0, or -1 and `errno`.
int operon_process_act_as(uid_t user, gid_t group, const gid_t *groups, size_t count);

/// The user of the process at the other end of a socket of this machine; -1: not to be had.
int64_t operon_process_peer(int socket);

/// The capabilities in effect (capabilities(7)), a bit for each.
uint64_t operon_process_capabilities(void);

/// What the child of a start is at.
operon_process_step operon_process_reached(const operon_process_progress *progress);

/// Kills the child of a start (SIGKILL). Only while its descriptor is open. 0, or -1: there is none.
/// One that waits for a file system may take the signal only when that answers.
int operon_process_interrupt(const operon_process_progress *progress);

/// Raises the soft limit of descriptors to the hard one; processes that are started get the soft
/// limit that was there before. Before the first of them. The limit that holds now; 0: unknown.
uint64_t operon_process_raise_descriptors(void);

/// Keeps other processes of the same user from reading the memory and the environment of this one
/// (PR_SET_DUMPABLE, proc(5)), and from leaving them in a core file.
void operon_process_conceal(void);

/// The value of a variable, which the caller frees; what the variable holds is overwritten with
/// zeros, also where /proc/PID/environ reads it. NULL: there is none. Before other threads read the
/// environment.
char *operon_process_take_variable(const char *name);

/// How a process ended.
typedef struct operon_process_end {
    /// 1: ended, 0: still runs, -1: its end is not to be had, and `error` says why.
    int state;
    /// 1: by a signal.
    int signaled;
    /// Exit code or signal number.
    int value;
    int error;
    /// CPU time of the process and of its descendants that were collected by their parents. (Its
    /// memory cannot be told: the kernel counts that of our process in, which it shared at first.)
    uint64_t cpu_nanoseconds;
} operon_process_end;

/// Collects a child that has ended, without waiting.
operon_process_end operon_process_collect(pid_t process);

/// Starts the guard: a process that sleeps until its parent lets go of `*lifeline`, by closing it
/// or by dying in whatever way, and then kills what is left and removes `directory`.
///
/// What is left is every process whose environment contains `marker`, wherever it has moved: out of
/// its group, its session, its parent's sight. Not found is only who also cleared its environment
/// or may not be looked at. If `control_group` is not NULL, the guard also kills everything in that
/// control group and below it, and removes these groups. Returns the guard's process, or -1 and
/// `errno`.
pid_t operon_process_guard(
    const char *marker, const char *directory, const char *control_group, int *lifeline);

/// Kills every process whose environment contains `marker`, but the caller; how many there were, at
/// least 1 if the system had no descriptor or memory for the whole look. One look: what is being
/// forked meanwhile is found by the next. On one thread at a time.
int operon_process_kill_marked(const char *marker);

/// Waits until a child has ended, without collecting it: its number stays its own.
void operon_process_await(pid_t process);

/// Waits until a child has ended, and collects it.
void operon_process_join(pid_t process);

/// Closes every descriptor from 3 up, but one (-1: none). Only between fork and exec, or in a
/// guard.
void operon_process_close_others(int but);

/// Gives every signal its default action and unblocks all. Only between fork and exec, or in a
/// guard.
void operon_process_reset_signals(void);

/// Undoes an inherited "ignore SIGCHLD", with which the kernel would throw away how children ended.
void operon_process_keep_children(void);

/// Names the calling thread, for people who look at it with `top -H`. At most 15 bytes.
void operon_process_name_thread(const char *name);

/// Waits for a semaphore until this time of the monotonic clock.
void operon_process_wait_semaphore(sem_t *semaphore, const struct timespec *end);

/// Whether the kernel knows of a time service that keeps the calendar clock (adjtimex(2)): 1 or 0; -1
/// if it does not say.
int operon_process_clock_is_kept(void);

/// A new epoll(7), closed on exec; -1 and `errno`.
int operon_process_epoll(void);

/// Watches `descriptor` for something to read, or its end. 0, or -1 and `errno`.
int operon_process_watch(int epoll, int descriptor, uint64_t data);

/// Ends the watch of a descriptor that is about to be closed. Its end alone does not do that while
/// another process has a copy of it (epoll(7)), as a child has until it executes its program.
void operon_process_unwatch(int epoll, int descriptor);

/// Watches `descriptor` until there is something to read, or its end, once; the next call watches it
/// again. 0, or -1 and `errno`.
int operon_process_watch_once(int epoll, int descriptor, uint64_t data);

/// A time since 1970.
typedef struct operon_process_time {
    int64_t seconds;
    uint32_t nanoseconds;
} operon_process_time;

/// A file as statx(2) shows it.
typedef struct operon_process_file {
    uint64_t inode;
    uint64_t links;
    uint64_t bytes;
    int is_regular;
    /// When its content (mtime), and when it or what is known of it (ctime) changed last.
    operon_process_time written;
    operon_process_time changed;
    /// When it was made, if the file system knows.
    int has_birth;
    operon_process_time born;
} operon_process_file;

/// Looks at a file without following a link at the end of its path. 0, or -1 and `errno`.
int operon_process_look(const char *path, operon_process_file *file);

/// A descriptor of any process, which becomes readable when it has ended (pidfd_open(2)); -1 and
/// `errno`.
int operon_process_open(pid_t process);

/// How a process ended, without collecting it. `state` 1: ended so; 0: not known yet; -1: not to be
/// had. It is known of children that were not collected and, from Linux 6.15 on, of every process
/// that was.
operon_process_end operon_process_observe(int descriptor, pid_t process);

/// Waits at most `milliseconds` (-1: for ever) and writes the `data` of at most `max` descriptors
/// that are ready. Returns how many; 0 also when a signal came first.
int operon_process_wait(int epoll, uint64_t *data, int max, int milliseconds);

/// pipe2(2) with O_CLOEXEC, which Swift's Glibc module does not have. 0, or -1 and `errno`.
int operon_process_pipe(int *reader, int *writer);

/// The variables of this process, `NAME=value`; ends with NULL. Whoever changes them meanwhile
/// changes what is read.
char **operon_process_environment(void);

/// Hands on what is printed with every line, also into a pipe: what comes before a crash is seen.
void operon_process_print_lines(void);

/// From here on large blocks (1 MiB and more) return to the system when they are freed, and the
/// allocator keeps at most 8 MiB at the end of each arena, which is more than a commit takes: less
/// would be taken from the system anew for each commit. By default glibc raises both bounds with
/// the blocks that are freed, to 32 and 64 MiB (mallopt(3), M_MMAP_THRESHOLD).
void operon_process_bound_free_memory(void);

/// Gives memory that is free, and that the allocator keeps for later, back to the system.
void operon_process_give_back_memory(void);

/// How many processors this process may run on.
int operon_process_processors(void);

/// Writes the numbers of these processors, ascending, at most `count`. How many were written.
int operon_process_processor_numbers(int *numbers, int count);

/// Whether a directory belongs to the file system of control groups, version 2 (cgroups(7)): 1 or 0.
int operon_process_is_control_group(const char *path);

/// Removes a file, or a directory with all that is in it, without following links. What cannot be
/// removed stays.
void operon_process_remove(const char *path);

#endif
