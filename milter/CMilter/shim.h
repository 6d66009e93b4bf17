// libmilter for Milter. Contains only the functions that Swift cannot call directly.
#pragma once
#include <libmilter/mfapi.h>
#include <libmilter/mfdef.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

// The greatest number of lines that smfi_setmlreply accepts (libmilter/smfi.c, MAXREPLIES).
#define POSTERN_MAX_REPLY_LINES 32

// Calls smfi_setmlreply, which is variadic, so Swift cannot call it. `lines` contains `count`
// strings. `count` is 1 to 32; for other counts the result is MI_FAILURE.
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

// The header defines bool as int or _Bool, depending on the configuration. With 0, libmilter never
// removes a socket, not even a stale one; Milter does that.
static inline int postern_opensocket(void) { return smfi_opensocket(0); }

// Gives the calling thread a umask of its own: unshare(2) with CLONE_FS (0x00000200). The system
// headers declare CLONE_FS only if _GNU_SOURCE is defined.
static inline long postern_own_umask(void) { return syscall(SYS_unshare, 0x00000200); }

// Makes glibc return the memory of ended sessions to the system. libmilter reads a body in blocks
// of 64 KiB, on threads that start and end with sessions. By default each thread would leave its
// blocks in a heap of its own, and glibc would keep them. The threshold of 60,000 is less than such
// a block, and more than a message of some kilobytes needs.
static inline void postern_return_memory(void) {
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, 2);
    mallopt(M_MMAP_THRESHOLD, 60000);
    mallopt(M_TRIM_THRESHOLD, 131072);
#endif
}
