// A clock that is wrong: a library for LD_PRELOAD that adds to the time of day what the file named by WRONG_CLOCK says, in seconds.
// The file is read again at each question, so that a test can make the clock jump. Clocks that measure stay as they are.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset(void) {
    const char *path = getenv("WRONG_CLOCK");
    char text[32] = {0};
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    return length > 0 ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int result = syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += offset();
    return result;
}

int gettimeofday(struct timeval *time, void *zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result) *result = now.tv_sec;
    return now.tv_sec;
}

// Waits until a time of the wrong clock: the kernel has the right one. A condition may have a clock that measures; its times are small.
int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
    static int (*next)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
    if (!next) {
        next = (int (*)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *))dlsym(RTLD_NEXT, "pthread_cond_clockwait");
    }
    if (until->tv_sec < 1000000000) return next(condition, mutex, CLOCK_MONOTONIC, until);
    struct timespec right = {until->tv_sec - offset(), until->tv_nsec};
    return next(condition, mutex, CLOCK_REALTIME, &right);
}
