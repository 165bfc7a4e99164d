// Preloaded into a process (LD_PRELOAD): counts and traces its file calls below one directory, and makes a chosen call
// fail, stop half way, or end the process. `shim.rs` builds and configures it.
//
//   QUORATE_SHIM_DIR    the directory, without symbolic links in its path; calls outside of it are not affected
//   QUORATE_SHIM_TRACE  a file to which every call is appended, with the written data
//   QUORATE_SHIM_FAULT  KIND:PATTERN:AT:ACTION. KIND is a kind below or `any`; PATTERN is a shell pattern of paths below
//                       the directory, which is `.` itself; AT counts such calls from 0, and `AT+` is that one and all
//                       after it; ACTION is kill-before, kill-after, kill-torn, short or the name of an errno
//   QUORATE_SHIM_CLOCK  OFFSET_MS:AT, added to the wall clock from its AT-th reading on, counted from 0
//
// One line per call: kind, offset, length, errno and path; then that many bytes and a line end. For `open` the offset is 1
// if the file was created and 2 if it was emptied, and the bytes are the inode's number; the bytes of a `rename` are the new
// path. The bytes of a directory's `sync` are a line for each of its files, inode and name, which reveals renames that bypass
// the C library. Standard output and error are traced as `out` and `err`, so that the order of messages and writes is known.
// The shim calls the system directly, so that it does not call itself. SQLite's shared memory is mapped; only its opening and
// growth are traced.

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum kind { OPEN, READ, WRITE, SYNC, TRUNCATE, RENAME, UNLINK, MKDIR, KINDS };
static const char *const NAMES[KINDS] = {"open",   "read",   "write",  "sync",
                                         "truncate", "rename", "unlink", "mkdir"};

// The action on a call: a positive value is an errno.
enum { NOTHING = 0, KILL_BEFORE = -1, KILL_AFTER = -2, KILL_TORN = -3, SHORT = -4 };

static const char *dir;
static size_t dir_length;
static int trace_fd = -1;
static int fault_kind = -1; // KINDS means any
static char fault_pattern[PATH_MAX];
static long fault_at, fault_seen;
static int fault_forever, fault_action;
static long long clock_offset_ms;
static long clock_at, clock_read;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void wrong(const char *variable) {
    fprintf(stderr, "shim: %s cannot be read\n", variable);
    _exit(99);
}

static int action_named(const char *name) {
    static const struct { const char *name; int action; } ACTIONS[] = {
        {"kill-before", KILL_BEFORE}, {"kill-after", KILL_AFTER}, {"kill-torn", KILL_TORN}, {"short", SHORT},
        {"EIO", EIO},                 {"ENOSPC", ENOSPC},         {"EROFS", EROFS},
    };
    for (size_t i = 0; i < sizeof ACTIONS / sizeof *ACTIONS; i++)
        if (!strcmp(name, ACTIONS[i].name)) return ACTIONS[i].action;
    wrong("QUORATE_SHIM_FAULT");
    return NOTHING;
}

static void read_fault(const char *text) {
    char kind[16], at[24], action[16];
    if (sscanf(text, "%15[^:]:%4095[^:]:%23[^:]:%15s", kind, fault_pattern, at, action) != 4) wrong("QUORATE_SHIM_FAULT");
    for (int i = 0; i < KINDS; i++)
        if (!strcmp(kind, NAMES[i])) fault_kind = i;
    if (!strcmp(kind, "any")) fault_kind = KINDS;
    if (fault_kind < 0) wrong("QUORATE_SHIM_FAULT");
    char *end;
    fault_at = strtol(at, &end, 10);
    fault_forever = *end == '+';
    fault_action = action_named(action);
}

__attribute__((constructor)) static void start(void) {
    const char *fault = getenv("QUORATE_SHIM_FAULT"), *trace = getenv("QUORATE_SHIM_TRACE");
    const char *clock = getenv("QUORATE_SHIM_CLOCK");
    if (trace) {
        trace_fd = syscall(SYS_openat, AT_FDCWD, trace, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (trace_fd < 0) wrong("QUORATE_SHIM_TRACE");
    }
    if (fault) read_fault(fault);
    if (clock && sscanf(clock, "%lld:%ld", &clock_offset_ms, &clock_at) != 2) wrong("QUORATE_SHIM_CLOCK");
    dir = getenv("QUORATE_SHIM_DIR");
    dir_length = dir ? strlen(dir) : 0;
}

// The path below the directory; NULL if it is outside.
static const char *below(const char *path) {
    if (!dir || strncmp(path, dir, dir_length)) return NULL;
    if (!path[dir_length]) return ".";
    return path[dir_length] == '/' ? path + dir_length + 1 : NULL;
}

// The path of an open file. A file that was removed meanwhile counts as outside.
static const char *of_fd(int fd, char *buffer) {
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = dir ? readlink(link, buffer, PATH_MAX - 1) : -1;
    if (length < 0) return NULL;
    buffer[length] = 0;
    return strstr(buffer, " (deleted)") ? NULL : below(buffer);
}

static const char *of_path(int at, const char *path, char *buffer) {
    if (!dir || !path || !*path) return NULL;
    if (*path == '/') return below(path);
    char base[PATH_MAX], link[40];
    if (at == AT_FDCWD) strcpy(link, "/proc/self/cwd");
    else snprintf(link, sizeof link, "/proc/self/fd/%d", at);
    ssize_t length = readlink(link, base, sizeof base - 1);
    if (length < 0) return NULL;
    base[length] = 0;
    if (!strncmp(path, "./", 2)) path += 2;
    return snprintf(buffer, PATH_MAX, "%s/%s", base, path) < PATH_MAX ? below(buffer) : NULL;
}

static void trace(const char *kind, long long offset, const void *bytes, size_t length, int error, const char *path) {
    if (trace_fd < 0) return;
    char head[PATH_MAX + 80];
    int size = snprintf(head, sizeof head, "%s %lld %zu %d %s\n", kind, offset, length, error, path);
    struct iovec parts[3] = {{head, size}, {(void *)bytes, length}, {(void *)"\n", 1}};
    int before = errno;
    if (syscall(SYS_writev, trace_fd, parts, 3) < 0) _exit(98);
    errno = before;
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

// A full disk refuses calls that need space, and a read-only one calls that change names or open for writing.
static int refuses(enum kind kind, int error, int makes, int writes) {
    if (error == ENOSPC) return kind == WRITE || kind == SYNC || kind == TRUNCATE || kind == MKDIR || kind == RENAME || makes;
    if (error == EROFS) return kind == TRUNCATE || kind == RENAME || kind == UNLINK || kind == MKDIR || writes;
    return 1;
}

// The action for this call. The caller holds the lock.
static int decide(enum kind kind, const char *path, int makes, int writes) {
    if (fault_kind != KINDS && fault_kind != (int)kind) return NOTHING;
    if (fault_kind < 0 || fnmatch(fault_pattern, path, 0)) return NOTHING;
    long seen = fault_seen++;
    if (fault_forever ? seen < fault_at : seen != fault_at) return NOTHING;
    if (fault_action == KILL_BEFORE) die();
    return fault_action > 0 && !refuses(kind, fault_action, makes, writes) ? NOTHING : fault_action;
}

// Runs a call other than a write, with its fault. The caller holds the lock; this releases it.
static long ended(enum kind kind, int action, long result, long long offset, const char *bytes, const char *path) {
    trace(NAMES[kind], offset, bytes, bytes ? strlen(bytes) : 0, result < 0 ? errno : 0, path);
    if (action == KILL_AFTER || action == KILL_TORN) die();
    int before = errno;
    pthread_mutex_unlock(&lock);
    errno = before;
    return result;
}

static long failed(int error) {
    errno = error;
    return -1;
}

#define CALL(kind, path, makes, writes, offset, bytes, real)                                                           \
    do {                                                                                                               \
        pthread_mutex_lock(&lock);                                                                                     \
        int action = decide(kind, path, makes, writes);                                                                \
        long result = action > 0 ? failed(action) : (real);                                                            \
        return ended(kind, action, result, offset, bytes, path);                                                       \
    } while (0)

static int open_at(int at, const char *path, int flags, mode_t mode) {
    char buffer[PATH_MAX];
    const char *name = of_path(at, path, buffer);
    if (!name) return syscall(SYS_openat, at, path, flags, mode);
    int there = faccessat(at, path, F_OK, 0) == 0;
    int makes = (flags & O_CREAT) && !there;
    long long what = makes ? 1 : (flags & O_TRUNC) ? 2 : 0;
    pthread_mutex_lock(&lock);
    int action = decide(OPEN, name, makes, makes || (flags & O_ACCMODE) != O_RDONLY);
    long result = action > 0 ? failed(action) : syscall(SYS_openat, at, path, flags, mode);
    struct stat file;
    char inode[24] = "";
    if (result >= 0 && !fstat(result, &file)) snprintf(inode, sizeof inode, "%llu", (unsigned long long)file.st_ino);
    return ended(OPEN, action, result, what, inode, name);
}

#define MODE                                                                                                           \
    mode_t mode = 0;                                                                                                   \
    if (flags & (O_CREAT | O_TMPFILE)) {                                                                               \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        mode = va_arg(more, mode_t);                                                                                   \
        va_end(more);                                                                                                  \
    }
int open(const char *path, int flags, ...) { MODE return open_at(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE return open_at(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE return open_at(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE return open_at(at, path, flags, mode); }

static ssize_t put(int fd, const void *bytes, size_t length, off_t at) {
    char buffer[PATH_MAX];
    const char *path = of_fd(fd, buffer);
    if (!path) {
        long done = at < 0 ? syscall(SYS_write, fd, bytes, length) : syscall(SYS_pwrite64, fd, bytes, length, at);
        if (done > 0 && (fd == 1 || fd == 2)) trace(fd == 1 ? "out" : "err", 0, bytes, done, 0, ".");
        return done;
    }
    pthread_mutex_lock(&lock);
    int action = decide(WRITE, path, 1, 1);
    size_t some = action == KILL_TORN || action == SHORT ? (length + 1) / 2 : length;
    long done = action > 0 ? failed(action)
                : at < 0 ? syscall(SYS_write, fd, bytes, some)
                         : syscall(SYS_pwrite64, fd, bytes, some, at);
    int before = errno;
    long long offset = at < 0 ? lseek(fd, 0, SEEK_CUR) - (done > 0 ? done : 0) : at;
    trace(NAMES[WRITE], offset, bytes, done > 0 ? done : 0, done < 0 ? before : 0, path);
    if (action == KILL_AFTER || action == KILL_TORN) die();
    pthread_mutex_unlock(&lock);
    errno = before;
    return done;
}

ssize_t write(int fd, const void *bytes, size_t length) { return put(fd, bytes, length, -1); }
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) { return put(fd, bytes, length, at); }
ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) { return put(fd, bytes, length, at); }

// The caller must handle the short write.
ssize_t writev(int fd, const struct iovec *parts, int count) {
    char buffer[PATH_MAX];
    if (!of_fd(fd, buffer) && fd != 1 && fd != 2) return syscall(SYS_writev, fd, parts, count);
    for (int i = 0; i < count; i++)
        if (parts[i].iov_len) return put(fd, parts[i].iov_base, parts[i].iov_len, -1);
    return 0;
}

static ssize_t get(int fd, void *bytes, size_t length, off_t at) {
    char buffer[PATH_MAX];
    const char *path = of_fd(fd, buffer);
#define REAL (at < 0 ? syscall(SYS_read, fd, bytes, length) : syscall(SYS_pread64, fd, bytes, length, at))
    if (!path) return REAL;
    CALL(READ, path, 0, 0, at < 0 ? 0 : at, NULL, REAL);
}

ssize_t read(int fd, void *bytes, size_t length) { return get(fd, bytes, length, -1); }
ssize_t pread(int fd, void *bytes, size_t length, off_t at) { return get(fd, bytes, length, at); }
ssize_t pread64(int fd, void *bytes, size_t length, off64_t at) { return get(fd, bytes, length, at); }

// Inode and name of each file of a directory; empty for other files.
static void files_in(int fd, const char *path, char *names, size_t room) {
    char full[PATH_MAX * 2];
    struct stat what;
    names[0] = 0;
    if (fstat(fd, &what) || !S_ISDIR(what.st_mode)) return;
    snprintf(full, sizeof full, "%s/%s", dir, path);
    DIR *entries = opendir(full);
    if (!entries) return;
    size_t used = 0;
    for (struct dirent *one; (one = readdir(entries));) {
        if (one->d_type != DT_REG) continue;
        size_t size = snprintf(names + used, room - used, "%llu %s\n", (unsigned long long)one->d_ino, one->d_name);
        if (size >= room - used) break;
        used += size;
    }
    names[used] = 0;
    closedir(entries);
}

static int sync_fd(long call, int fd) {
    char buffer[PATH_MAX];
    const char *path = of_fd(fd, buffer);
    if (!path) return syscall(call, fd);
    static char names[1 << 16];
    pthread_mutex_lock(&lock);
    int action = decide(SYNC, path, 0, 0);
    long result = action > 0 ? failed(action) : syscall(call, fd);
    int before = errno;
    files_in(fd, path, names, sizeof names);
    errno = before;
    return ended(SYNC, action, result, 0, names, path);
}

int fsync(int fd) { return sync_fd(SYS_fsync, fd); }
int fdatasync(int fd) { return sync_fd(SYS_fdatasync, fd); }

static int cut(int fd, off_t length) {
    char buffer[PATH_MAX];
    const char *path = of_fd(fd, buffer);
    if (!path) return syscall(SYS_ftruncate, fd, length);
    CALL(TRUNCATE, path, 0, 1, length, NULL, syscall(SYS_ftruncate, fd, length));
}

int ftruncate(int fd, off_t length) { return cut(fd, length); }
int ftruncate64(int fd, off64_t length) { return cut(fd, length); }

static int move(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    char from_buffer[PATH_MAX], to_buffer[PATH_MAX];
    const char *old = of_path(from_at, from, from_buffer), *new = of_path(to_at, to, to_buffer);
    if (!old || !new) return syscall(SYS_renameat2, from_at, from, to_at, to, flags);
    CALL(RENAME, old, 0, 1, 0, new, syscall(SYS_renameat2, from_at, from, to_at, to, flags));
}

int rename(const char *from, const char *to) { return move(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int from_at, const char *from, int to_at, const char *to) { return move(from_at, from, to_at, to, 0); }
int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    return move(from_at, from, to_at, to, flags);
}

// A link, traced with offset 1.
int linkat(int from_at, const char *from, int to_at, const char *to, int flags) {
    char from_buffer[PATH_MAX], to_buffer[PATH_MAX];
    const char *old = of_path(from_at, from, from_buffer), *new = of_path(to_at, to, to_buffer);
    if (!old || !new) return syscall(SYS_linkat, from_at, from, to_at, to, flags);
    CALL(RENAME, old, 1, 1, 1, new, syscall(SYS_linkat, from_at, from, to_at, to, flags));
}

int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

int unlinkat(int at, const char *path, int flags) {
    char buffer[PATH_MAX];
    const char *name = of_path(at, path, buffer);
    if (!name) return syscall(SYS_unlinkat, at, path, flags);
    CALL(UNLINK, name, 0, 1, 0, NULL, syscall(SYS_unlinkat, at, path, flags));
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }

int mkdirat(int at, const char *path, mode_t mode) {
    char buffer[PATH_MAX];
    const char *name = of_path(at, path, buffer);
    if (!name) return syscall(SYS_mkdirat, at, path, mode);
    CALL(MKDIR, name, 1, 1, 0, NULL, syscall(SYS_mkdirat, at, path, mode));
}

int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = syscall(SYS_clock_gettime, clock, now);
    if (result || clock != CLOCK_REALTIME || !clock_offset_ms) return result;
    if (__atomic_fetch_add(&clock_read, 1, __ATOMIC_RELAXED) < clock_at) return 0;
    long long ns = now->tv_nsec + clock_offset_ms % 1000 * 1000000;
    now->tv_sec += clock_offset_ms / 1000 + (ns < 0 ? -1 : ns / 1000000000);
    now->tv_nsec = ns < 0 ? ns + 1000000000 : ns % 1000000000;
    return 0;
}
