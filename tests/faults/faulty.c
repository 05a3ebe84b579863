/* Stands before the C library's writing calls and its clock, for tests of faults (LD_PRELOAD; Linux).
 *
 * A process arms it for one folder. From then on calls that change a file below that folder are counted, and the k-th
 * fails with an error, or does half of its work and kills the process. Files of Dagster's own databases (below
 * <folder>/dagster) are left alone unless the armed folder is that one. The clock can be moved at any time.
 *
 * Not here: which calls are struck (tests/faults/zygote.py).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static char folder[PATH_MAX], spared[PATH_MAX];
static atomic_long calls, strike = -1;
static atomic_int fault; /* an errno, or 0 for a kill */
static atomic_long moved; /* seconds */

void faulty_arm(const char *below, long at, int error) {
    snprintf(folder, sizeof folder, "%s/", below);
    snprintf(spared, sizeof spared, "%s/dagster/", below);
    atomic_store(&calls, 0);
    atomic_store(&fault, error);
    atomic_store(&strike, at);
}

long faulty_calls(void) { return atomic_load(&calls); }

void faulty_move_clock(long seconds) { atomic_store(&moved, seconds); }

static int below(const char *path) {
    return folder[0] && !strncmp(path, folder, strlen(folder)) && strncmp(path, spared, strlen(spared));
}

/* 0: go on; 1: fail with errno set; 2: do half, then die. */
static int struck(const char *path) {
    if (!below(path) || atomic_fetch_add(&calls, 1) + 1 != atomic_load(&strike)) return 0;
    int error = atomic_load(&fault);
    if (!error) return 2;
    errno = error;
    return 1;
}

static int struck_fd(int fd) {
    if (!folder[0]) return 0;
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int before = errno;
    ssize_t length = readlink(link, path, sizeof path - 1);
    errno = before;
    if (length <= 0) return 0;
    path[length] = 0;
    return struck(path);
}

static void die(void) { kill(getpid(), SIGKILL); pause(); }

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *data, size_t size) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = dlsym(RTLD_NEXT, "write");
    int what = struck_fd(fd);
    if (what == 1) return -1;
    if (what == 2) { real(fd, data, size / 2); die(); }
    return real(fd, data, size);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    REAL(pwrite64);
    int what = struck_fd(fd);
    if (what == 1) return -1;
    if (what == 2) { real(fd, data, size / 2, at); die(); }
    return real(fd, data, size, at);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return pwrite64(fd, data, size, at); }

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(writev);
    int what = struck_fd(fd);
    if (what == 1) return -1;
    if (what == 2) { real(fd, parts, count / 2); die(); }
    return real(fd, parts, count);
}

int fsync(int fd) {
    REAL(fsync);
    int what = struck_fd(fd);
    if (what == 1) return -1;
    if (what == 2) die();
    return real(fd);
}

int fdatasync(int fd) {
    REAL(fdatasync);
    int what = struck_fd(fd);
    if (what == 1) return -1;
    if (what == 2) die();
    return real(fd);
}

int ftruncate64(int fd, off64_t size) {
    REAL(ftruncate64);
    int what = struck_fd(fd);
    if (what == 1) return -1;
    if (what == 2) die();
    return real(fd, size);
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

int rename(const char *old, const char *new) {
    REAL(rename);
    int what = struck(new);
    if (what == 1) return -1;
    if (what == 2) die();
    return real(old, new);
}

static int opening(const char *path, int flags) { return (flags & (O_CREAT | O_TRUNC)) ? struck(path) : 0; }

int open64(const char *path, int flags, ...) {
    REAL(open64);
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    int what = opening(path, flags);
    if (what == 1) return -1;
    if (what == 2) die();
    return real(path, flags, mode);
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return open64(path, flags, mode);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(clock, now);
    if (clock == CLOCK_REALTIME) now->tv_sec += atomic_load(&moved);
    return done;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *kept) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (kept) *kept = exact.tv_sec;
    return exact.tv_sec;
}
