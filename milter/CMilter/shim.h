// libmilter for Milter: what Swift cannot call directly, and nothing more.
#pragma once
#include <libmilter/mfapi.h>
#include <libmilter/mfdef.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

// The most lines that smfi_setmlreply takes (libmilter/smfi.c, MAXREPLIES).
#define POSTERN_MAX_REPLY_LINES 32

// smfi_setmlreply is variadic, which Swift cannot call. `lines` holds `count` strings, 1 to 32; more are refused.
static inline int postern_setmlreply(SMFICTX *ctx, const char *code, const char *enhanced, const char *const *lines, int count) {
    const char *l[POSTERN_MAX_REPLY_LINES] = {0};
    if (count < 1 || count > POSTERN_MAX_REPLY_LINES)
        return MI_FAILURE;
    for (int i = 0; i < count; i++)
        l[i] = lines[i];
    return smfi_setmlreply(ctx, code, enhanced, l[0], l[1], l[2], l[3], l[4], l[5], l[6], l[7], l[8], l[9], l[10], l[11],
                           l[12], l[13], l[14], l[15], l[16], l[17], l[18], l[19], l[20], l[21], l[22], l[23], l[24], l[25],
                           l[26], l[27], l[28], l[29], l[30], l[31], (char *)NULL);
}

// The header spells bool as int or _Bool, by configuration. 0: never remove a socket, not even a stale one; Milter does that.
static inline int postern_opensocket(void) { return smfi_opensocket(0); }

// Gives the calling thread a umask of its own (unshare(2) with CLONE_FS, which is declared for _GNU_SOURCE alone).
static inline long postern_own_umask(void) { return syscall(SYS_unshare, 0x00000200); }

// Gives memory back that sessions have used. libmilter reads a body in blocks of 64 KiB on threads that come and go: each would leave its
// blocks in a heap of its own, where glibc keeps them. 60,000 is below such a block, and above what a message of some kilobytes takes.
static inline void postern_return_memory(void) {
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, 2);
    mallopt(M_MMAP_THRESHOLD, 60000);
    mallopt(M_TRIM_THRESHOLD, 131072);
#endif
}
