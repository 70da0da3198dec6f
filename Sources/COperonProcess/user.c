#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "operon_process.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TEXT_BYTES = 64 * 1024, GROUPS_MAX = 65536 };

int operon_process_find_user(const char *name, operon_process_user *user) {
    char *text = malloc(TEXT_BYTES);
    if (text == NULL) return ENOMEM;
    struct passwd entry, *found = NULL;
    int error = getpwnam_r(name, &entry, text, TEXT_BYTES, &found);
    if (found == NULL) {
        free(text);
        // What the databases of users answer for a name that none of them has (getpwnam(3)).
        return error == 0 || error == ESRCH || error == EBADF || error == EPERM ? ENOENT : error;
    }
    *user = (operon_process_user){.user = found->pw_uid, .group = found->pw_gid};
    user->name = strdup(found->pw_name);
    user->home = strdup(found->pw_dir);
    int count = 64;
    for (;;) {
        gid_t *groups = realloc(user->groups, (size_t)count * sizeof(gid_t));
        if (groups == NULL) break;
        user->groups = groups;
        int held = count;
        if (getgrouplist(name, found->pw_gid, groups, &count) >= 0) {
            user->group_count = (size_t)count;
            break;
        }
        if (count <= held) count = held * 2;
        if (count > GROUPS_MAX) break;
    }
    free(text);
    if (user->name != NULL && user->home != NULL && user->group_count > 0) return 0;
    operon_process_free_user(user);
    return ENOMEM;
}

void operon_process_free_user(operon_process_user *user) {
    free(user->name);
    free(user->home);
    free(user->groups);
    *user = (operon_process_user){0};
}

// The C library's functions would change all threads of this process (nptl(7)).
int operon_process_act_as(uid_t user, gid_t group, const gid_t *groups, size_t count) {
    if (syscall(SYS_setgroups, count, groups) != 0) return -1;
    (void)syscall(SYS_setfsgid, group);
    (void)syscall(SYS_setfsuid, user);
    // They tell only who was acted as before: asked with an id that there is not, who is now.
    errno = EPERM;
    if ((uid_t)syscall(SYS_setfsuid, (uid_t)-1) != user) return -1;
    return (gid_t)syscall(SYS_setfsgid, (gid_t)-1) == group ? 0 : -1;
}

int64_t operon_process_peer(int socket) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? peer.uid : -1;
}

uint64_t operon_process_capabilities(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
    if (syscall(SYS_capget, &header, data) != 0) return 0;
    return (uint64_t)data[1].effective << 32 | data[0].effective;
}
