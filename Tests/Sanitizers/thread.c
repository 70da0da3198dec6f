// Linked into every program that `scripts/test-sanitized thread` builds.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

// Tests start programs with an environment of their own, and so do workers, so TSAN_OPTIONS would not
// reach them all. OPTIONS is the path of a file that has the options.
const char *__tsan_default_options(void) { return "include=" OPTIONS; }

// The sanitizer sees what Synchronization's Mutex does where nobody waits, since that is inlined into
// our code. It does not see the rest, which is in the standard library, and would report whatever a
// mutex protects. These functions take the place of the library's, and tell the sanitizer.
void __tsan_acquire(void *address);
void __tsan_release(void *address);

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *self
#define LOCK_SLOW "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK_SLOW "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"
#define TRY_LOCK_SLOW "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"

SWIFT void lock_slow(uint32_t thread, SELF) __asm__(LOCK_SLOW);
SWIFT void unlock_slow(SELF) __asm__(UNLOCK_SLOW);
SWIFT _Bool try_lock_slow(SELF) __asm__(TRY_LOCK_SLOW);

SWIFT void lock_slow(uint32_t thread, SELF) {
    SWIFT void (*library)(uint32_t, SELF) = dlsym(RTLD_NEXT, LOCK_SLOW);
    library(thread, self);
    __tsan_acquire(self);
}

SWIFT void unlock_slow(SELF) {
    SWIFT void (*library)(SELF) = dlsym(RTLD_NEXT, UNLOCK_SLOW);
    __tsan_release(self);
    library(self);
}

SWIFT _Bool try_lock_slow(SELF) {
    SWIFT _Bool (*library)(SELF) = dlsym(RTLD_NEXT, TRY_LOCK_SLOW);
    _Bool locked = library(self);
    if (locked) __tsan_acquire(self);
    return locked;
}
