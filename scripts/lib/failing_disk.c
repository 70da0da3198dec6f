// A library that is loaded into a program with LD_PRELOAD and fails one call of pwrite, ftruncate,
// fsync or fdatasync, which are those that SQLite uses, on a file whose path begins with
// $FAILING_DISK, with EIO: the call of number $FAILING_CALL, from 1. When the program ends, it says on standard error how many such calls there were, and how many
// of them after the one that failed. Files that end in "-shm" are memory, and not counted.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static _Atomic long calls;
static _Atomic long after;

static int is_counted(int file) {
    const char *prefix = getenv("FAILING_DISK");
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (!prefix || length < 0) return 0;
    path[length] = 0;
    return strncmp(path, prefix, strlen(prefix)) == 0 && !strstr(path, "-shm");
}

/// Whether this call is the one that fails.
static int fails(int file) {
    if (!is_counted(file)) return 0;
    const char *number = getenv("FAILING_CALL");
    long failing = number ? atol(number) : 0;
    long call = ++calls;
    if (failing > 0 && call > failing) after++;
    if (call != failing) return 0;
    errno = EIO;
    return 1;
}

__attribute__((destructor)) static void report(void) {
    fprintf(stderr, "calls %ld after %ld\n", (long)calls, (long)after);
}

#define REAL(name, type) ((type)dlsym(RTLD_NEXT, name))

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
    if (fails(file)) return -1;
    return REAL("pwrite", ssize_t(*)(int, const void *, size_t, off_t))(file, bytes, count, offset);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
    if (fails(file)) return -1;
    return REAL("pwrite64", ssize_t(*)(int, const void *, size_t, off64_t))(file, bytes, count, offset);
}

int fsync(int file) { return fails(file) ? -1 : REAL("fsync", int (*)(int))(file); }

int fdatasync(int file) { return fails(file) ? -1 : REAL("fdatasync", int (*)(int))(file); }

int ftruncate(int file, off_t length) {
    return fails(file) ? -1 : REAL("ftruncate", int (*)(int, off_t))(file, length);
}

int ftruncate64(int file, off64_t length) {
    return fails(file) ? -1 : REAL("ftruncate64", int (*)(int, off64_t))(file, length);
}
