/* windows.c: files: their names, what they are, directories and disks.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   a descriptor is one of the C library, in binary, whose handle others
 *         may rename and remove meanwhile. A file that is in use is moved aside
 *         before it is removed, where the system cannot free its name at once.
 * Holds   a file that mkstemp makes and unlink is told to remove at once stays
 *         while its mapping does, or the process, and no longer. */
#include "os/windows/private.h"

#include <direct.h>
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <io.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#undef fopen
#undef freopen

/* ---- errors and names ---------------------------------------------------- */

static int fail_as(DWORD e)
{
    static const struct { DWORD is; int means; } known[] = {
        {ERROR_FILE_NOT_FOUND, ENOENT}, {ERROR_PATH_NOT_FOUND, ENOENT},
        {ERROR_INVALID_NAME, ENOENT}, {ERROR_BAD_NETPATH, ENOENT},
        {ERROR_DIRECTORY, ENOTDIR}, {ERROR_ALREADY_EXISTS, EEXIST},
        {ERROR_FILE_EXISTS, EEXIST}, {ERROR_ACCESS_DENIED, EACCES},
        {ERROR_SHARING_VIOLATION, EACCES}, {ERROR_DELETE_PENDING, EACCES},
        {ERROR_WRITE_PROTECT, EACCES}, {ERROR_LOCK_VIOLATION, EWOULDBLOCK},
        {ERROR_IO_PENDING, EWOULDBLOCK}, {ERROR_DISK_FULL, ENOSPC},
        {ERROR_HANDLE_DISK_FULL, ENOSPC}, {ERROR_NOT_ENOUGH_MEMORY, ENOMEM},
        {ERROR_OUTOFMEMORY, ENOMEM}, {ERROR_COMMITMENT_LIMIT, ENOMEM},
        {ERROR_INVALID_HANDLE, EBADF}, {ERROR_INVALID_PARAMETER, EINVAL},
        {ERROR_NOT_SAME_DEVICE, EXDEV}, {ERROR_DIR_NOT_EMPTY, ENOTEMPTY},
        {ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG},
        {ERROR_BROKEN_PIPE, EPIPE}, {ERROR_NO_DATA, EPIPE},
        {ERROR_USER_MAPPED_FILE, EBUSY}, {ERROR_NOT_SUPPORTED, ENOTSUP},
        {ERROR_INVALID_FUNCTION, ENOTSUP},
    };
    errno = EIO;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].is == e) errno = known[i].means;
    return -1;
}

int win_failed(void)
{
    return fail_as(GetLastError());
}

/* "/tmp/tether-...", where there is no such folder, is in what the system has
 * for it. Other names in /tmp are the user's. */
static int widen_temporary(wchar_t *out, int n, const char **path)
{
    const bool own = !strcmp(*path, "/tmp")
                  || !strncmp(*path, "/tmp/tether", 11);
    if (!own || GetFileAttributesW(L"\\tmp") != INVALID_FILE_ATTRIBUTES)
        return 0;
    *path += (*path)[4] ? 5 : 4;
    return (int)GetTempPathW((DWORD)n, out);
}

const wchar_t *win_wide(win_name *w, const char *path)
{
    enum { ROOM = sizeof w->text / sizeof *w->text, LONG = 240 };
    if (!strcmp(path, "/dev/null")) return L"NUL";
    const int at = widen_temporary(w->text, ROOM, &path);
    if (!*path && !at) return errno = ENOENT, NULL;
    const int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1,
                                      w->text + at, ROOM - 8 - at);
    if (!n) {
        errno = GetLastError() == ERROR_INSUFFICIENT_BUFFER ? ENAMETOOLONG
                                                            : ENOENT;
        return NULL;
    }
    for (wchar_t *c = w->text; *c; c++)
        if (*c == '/') *c = '\\';
    if (GetFullPathNameW(w->text, 0, NULL, NULL) < LONG
        || !wcsncmp(w->text, L"\\\\?\\", 4)) return w->text;
    win_name whole;
    const DWORD k = GetFullPathNameW(w->text, ROOM - 8, whole.text, NULL);
    if (!k || k >= ROOM - 8) return errno = ENAMETOOLONG, NULL;
    const bool share = !wcsncmp(whole.text, L"\\\\", 2);
    wcscpy(w->text, share ? L"\\\\?\\UNC" : L"\\\\?\\");
    wcscat(w->text, whole.text + (share ? 1 : 0));
    return w->text;
}

bool win_narrow(char *out, size_t n, const wchar_t *text)
{
    if (!WideCharToMultiByte(CP_UTF8, 0, text, -1, out, (int)n, NULL, NULL))
        return false;
    for (; *out; out++)
        if (*out == '\\') *out = '/';
    return true;
}

/* ---- what a file is ------------------------------------------------------ */

#define SHARE_ALL (FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE)

HANDLE win_handle(int fd)
{
    const HANDLE h = fd < 0 ? INVALID_HANDLE_VALUE : (HANDLE)_get_osfhandle(fd);
    if (h == INVALID_HANDLE_VALUE) errno = EBADF;
    return h;
}

static struct timespec win_time(LARGE_INTEGER t)
{
    const int64_t n = t.QuadPart - INT64_C(116444736000000000);
    return (struct timespec){.tv_sec = n / 10000000,
                             .tv_nsec = (long)(n % 10000000 * 100)};
}

static unsigned mode_of(HANDLE h, DWORD attributes)
{
    FILE_ATTRIBUTE_TAG_INFO tag = {0};
    if (attributes & FILE_ATTRIBUTE_REPARSE_POINT
        && GetFileInformationByHandleEx(h, FileAttributeTagInfo, &tag,
                                        sizeof tag)
        && tag.ReparseTag == IO_REPARSE_TAG_SYMLINK) return S_IFLNK | 0777;
    if (attributes & FILE_ATTRIBUTE_DIRECTORY) return S_IFDIR | 0755;
    return S_IFREG | (attributes & FILE_ATTRIBUTE_READONLY ? 0444 : 0644);
}

static int stat_handle(HANDLE h, struct os_stat *st)
{
    BY_HANDLE_FILE_INFORMATION i;
    FILE_BASIC_INFO times;
    *st = (struct os_stat){.st_nlink = 1};
    SetLastError(0);
    const DWORD kind = GetFileType(h);
    if (kind == FILE_TYPE_UNKNOWN && GetLastError()) return win_failed();
    if (kind != FILE_TYPE_DISK) {
        st->st_mode = (kind == FILE_TYPE_PIPE ? S_IFIFO : S_IFCHR) | 0600;
        return 0;
    }
    if (!GetFileInformationByHandle(h, &i)
        || !GetFileInformationByHandleEx(h, FileBasicInfo, &times,
                                         sizeof times)) return win_failed();
    st->st_mode = mode_of(h, i.dwFileAttributes);
    st->st_size = (int64_t)i.nFileSizeHigh << 32 | i.nFileSizeLow;
    st->st_dev = i.dwVolumeSerialNumber;
    st->st_ino = (uint64_t)i.nFileIndexHigh << 32 | i.nFileIndexLow;
    st->st_nlink = i.nNumberOfLinks;
    st->st_mtim = win_time(times.LastWriteTime);
    st->st_ctim = win_time(times.ChangeTime);
    return 0;
}

static HANDLE handle_to(const char *path, DWORD access, DWORD more)
{
    win_name w;
    const wchar_t *name = win_wide(&w, path);
    if (!name) return INVALID_HANDLE_VALUE;
    HANDLE h = CreateFileW(name, access, SHARE_ALL, NULL, OPEN_EXISTING,
                           FILE_FLAG_BACKUP_SEMANTICS | more, NULL);
    if (h == INVALID_HANDLE_VALUE) win_failed();
    return h;
}

static int stat_path(const char *path, struct os_stat *st, DWORD more)
{
    const HANDLE h = handle_to(path, FILE_READ_ATTRIBUTES, more);
    const size_t n = strlen(path);
    if (h == INVALID_HANDLE_VALUE) return -1;
    const int bad = stat_handle(h, st);
    CloseHandle(h);
    if (bad || path[n - 1] != '/' || S_ISDIR(st->st_mode)) return bad;
    errno = ENOTDIR;
    return -1;
}

int os_stat(const char *path, struct os_stat *st)
{
    return stat_path(path, st, 0);
}

int os_lstat(const char *path, struct os_stat *st)
{
    return stat_path(path, st, FILE_FLAG_OPEN_REPARSE_POINT);
}

int os_fstat(int fd, struct os_stat *st)
{
    const HANDLE h = win_handle(fd);
    return h == INVALID_HANDLE_VALUE ? -1 : stat_handle(h, st);
}

/* A program may be named without its ending. */
int os_access(const char *path, int how)
{
    char program[4096];
    struct os_stat st;
    if (os_stat(path, &st)) {
        if (how != X_OK || errno != ENOENT || strstr(path, ".exe")) return -1;
        snprintf(program, sizeof program, "%s.exe", path);
        return os_stat(program, &st);
    }
    if (!(how & W_OK) || S_ISDIR(st.st_mode) || st.st_mode & 0200) return 0;
    errno = EACCES;
    return -1;
}

/* ---- files --------------------------------------------------------------- */

static DWORD access_of(int flags)
{
    switch (flags & (O_WRONLY | O_RDWR)) {
    case O_WRONLY: return GENERIC_WRITE;
    case O_RDWR: return GENERIC_READ | GENERIC_WRITE;
    default: return GENERIC_READ;
    }
}

static DWORD making_of(int flags)
{
    if (flags & O_CREAT)
        return flags & O_EXCL ? CREATE_NEW
             : flags & O_TRUNC ? CREATE_ALWAYS : OPEN_ALWAYS;
    return flags & O_TRUNC ? TRUNCATE_EXISTING : OPEN_EXISTING;
}

/* The system refuses to open a directory; POSIX refuses to read it. */
static int refuse_open(const wchar_t *name, DWORD e)
{
    const DWORD is = GetFileAttributesW(name);
    fail_as(e);
    if (e == ERROR_ACCESS_DENIED && is != INVALID_FILE_ATTRIBUTES
        && is & FILE_ATTRIBUTE_DIRECTORY) errno = EISDIR;
    return -1;
}

int os_open(const char *path, int flags, ...)
{
    win_name w;
    const wchar_t *name = win_wide(&w, path);
    SECURITY_ATTRIBUTES s = {sizeof s, NULL, !(flags & O_CLOEXEC)};
    DWORD may = access_of(flags), more = FILE_ATTRIBUTE_NORMAL;
    if (!name) return -1;
    if (may == GENERIC_READ && !(flags & O_CREAT))
        more |= FILE_FLAG_BACKUP_SEMANTICS;
    if (flags & O_NOFOLLOW) more |= FILE_FLAG_OPEN_REPARSE_POINT;
    if (flags & _O_TEMPORARY) more |= FILE_FLAG_DELETE_ON_CLOSE, may |= DELETE;
    HANDLE h = CreateFileW(name, may, SHARE_ALL, &s, making_of(flags), more,
                           NULL);
    if (h == INVALID_HANDLE_VALUE) return refuse_open(name, GetLastError());
    const int fd = _open_osfhandle((intptr_t)h, (flags & (O_APPEND | O_CLOEXEC))
                                   | (may == GENERIC_READ ? _O_RDONLY : 0));
    if (fd < 0) CloseHandle(h);
    return fd;
}

/* 64 random bytes in a file, for "/dev/urandom". */
static FILE *random_file(void)
{
    BOOLEAN NTAPI SystemFunction036(void *to, ULONG n); /* RtlGenRandom */
    char bytes[64];
    FILE *f = os_tmpfile();
    if (!f || !SystemFunction036(bytes, sizeof bytes)) return f;
    fwrite(bytes, 1, sizeof bytes, f);
    rewind(f);
    return f;
}

FILE *os_fopen(const char *path, const char *mode)
{
    const bool plus = strchr(mode, '+') != NULL;
    const int how = plus ? O_RDWR : *mode == 'r' ? O_RDONLY : O_WRONLY;
    const int make = *mode == 'r' ? 0 : O_CREAT | (*mode == 'a' ? O_APPEND
                                                                : O_TRUNC);
    const char kind[4] = {*mode, 'b', plus ? '+' : '\0', '\0'};
    if (!strcmp(path, "/dev/urandom")) return random_file();
    const int fd = os_open(path, how | make
                           | (strchr(mode, 'e') ? O_CLOEXEC : 0)
                           | (strchr(mode, 'x') ? O_EXCL : 0));
    FILE *f = fd >= 0 ? _fdopen(fd, kind) : NULL;
    if (fd >= 0 && !f) _close(fd);
    return f;
}

FILE *os_freopen(const char *path, const char *mode, FILE *f)
{
    return freopen(strcmp(path, "/dev/null") ? path : "NUL", mode, f);
}

int os_mkdir(const char *path, int mode)
{
    win_name w;
    const wchar_t *name = win_wide(&w, path);
    (void)mode;
    return name ? win_as(CreateDirectoryW(name, NULL)) : -1;
}

int os_rmdir(const char *path)
{
    win_name w;
    const wchar_t *name = win_wide(&w, path);
    return name ? win_as(RemoveDirectoryW(name)) : -1;
}

/* Another name next to it, for a file whose name is wanted. */
static bool move_aside(const wchar_t *name, win_name *aside)
{
    static LONG number;
    const LONG k = InterlockedIncrement(&number);
    if (wcslen(name) + 32 > sizeof aside->text / sizeof *aside->text)
        return false;
    swprintf(aside->text, sizeof aside->text / sizeof *aside->text,
             L"%ls.%lu-%ld.gone", name, GetCurrentProcessId(), k);
    return MoveFileExW(name, aside->text, 0);
}

/* Remove it so that its name is free now, whoever has it open. */
static bool remove_name(const wchar_t *name)
{
    enum { INFO_EX = 21, POSIX_DELETE = 1 | 2 | 16 };
    win_name aside;
    DWORD flags = POSIX_DELETE;
    HANDLE h = CreateFileW(name, DELETE, SHARE_ALL, NULL, OPEN_EXISTING,
                           FILE_FLAG_OPEN_REPARSE_POINT, NULL);
    if (h == INVALID_HANDLE_VALUE) return false;
    const bool gone = SetFileInformationByHandle(h, (FILE_INFO_BY_HANDLE_CLASS)
                                                 INFO_EX, &flags, sizeof flags);
    CloseHandle(h);
    if (gone && GetFileAttributesW(name) == INVALID_FILE_ATTRIBUTES)
        return true;
    return move_aside(name, &aside) ? DeleteFileW(aside.text)
                                    : DeleteFileW(name);
}

/* What mkstemp made last; `going` removes it when it is closed. */
static __thread struct {
    char path[4096];
    int fd;
    HANDLE going;
} made;

static int let_go(const wchar_t *name)
{
    *made.path = '\0';
    made.going = CreateFileW(name, DELETE, SHARE_ALL, NULL, OPEN_EXISTING,
                             FILE_FLAG_DELETE_ON_CLOSE, NULL);
    return win_as(made.going != INVALID_HANDLE_VALUE);
}

HANDLE win_going(int fd)
{
    const HANDLE going = fd == made.fd ? made.going : NULL;
    if (going) made.going = NULL;
    return going;
}

int os_unlink(const char *path)
{
    win_name w;
    const wchar_t *name = win_wide(&w, path);
    if (!name) return -1;
    if (!strcmp(path, made.path)
        && win_handle(made.fd) != INVALID_HANDLE_VALUE)
        return let_go(name);
    return win_as(remove_name(name));
}

int os_remove(const char *path)
{
    struct os_stat st;
    if (os_lstat(path, &st)) return -1;
    return S_ISDIR(st.st_mode) ? os_rmdir(path) : os_unlink(path);
}

/* What is open under the new name is moved aside first: it would be refused. */
static int try_rename(const wchar_t *old, const wchar_t *new)
{
    win_name aside;
    if (MoveFileExW(old, new, MOVEFILE_REPLACE_EXISTING)) return 0;
    const DWORD e = GetLastError(), is = GetFileAttributesW(new);
    if (is == INVALID_FILE_ATTRIBUTES || is & FILE_ATTRIBUTE_DIRECTORY
        || !move_aside(new, &aside)) return fail_as(e);
    if (MoveFileExW(old, new, 0)) return DeleteFileW(aside.text), 0;
    MoveFileExW(aside.text, new, 0);
    return fail_as(e);
}

/* Players and scanners hold a file for a moment. */
int os_rename(const char *from, const char *to)
{
    win_name a, b;
    const wchar_t *old = win_wide(&a, from), *new = win_wide(&b, to);
    if (!old || !new) return -1;
    for (int i = 0; i < 30; i++) {
        if (!try_rename(old, new)) return 0;
        if (errno != EACCES && errno != EBUSY) return -1;
        Sleep(100);
    }
    return -1;
}

int link(const char *from, const char *to)
{
    win_name a, b;
    const wchar_t *old = win_wide(&a, from), *new = win_wide(&b, to);
    return old && new ? win_as(CreateHardLinkW(new, old, NULL)) : -1;
}

int symlink(const char *to, const char *path)
{
    enum { UNPRIVILEGED = 2 };
    win_name a, b;
    const wchar_t *old = win_wide(&a, to), *new = win_wide(&b, path);
    return old && new ? win_as(CreateSymbolicLinkW(new, old, UNPRIVILEGED))
                      : -1;
}

ssize_t readlink(const char *path, char *to, size_t n)
{
    (void)path, (void)to, (void)n;
    errno = EINVAL;                      /* realpath follows them */
    return -1;
}

char *realpath(const char *path, char *out)
{
    win_name w;
    char name[4 * 4096];
    const HANDLE h = handle_to(path, FILE_READ_ATTRIBUTES, 0);
    if (h == INVALID_HANDLE_VALUE) return NULL;
    const DWORD k = GetFinalPathNameByHandleW(h, w.text, 4096, 0);
    CloseHandle(h);
    if (!k || k >= 4096 || !win_narrow(name, sizeof name, w.text))
        return errno = ENAMETOOLONG, NULL;
    char *from = name;
    if (!strncmp(name, "//?/UNC/", 8)) *(from += 6) = '/';
    else if (!strncmp(name, "//?/", 4)) from += 4;
    return out ? strcpy(out, from) : _strdup(from);
}

int os_ftruncate(int fd, int64_t size)
{
    FILE_END_OF_FILE_INFO e = {.EndOfFile.QuadPart = size};
    return win_as(SetFileInformationByHandle(win_handle(fd), FileEndOfFileInfo,
                                             &e, sizeof e));
}

int posix_fallocate(int fd, off_t at, off_t n)
{
    struct os_stat st;
    if (os_fstat(fd, &st)) return errno;
    return st.st_size < at + n && os_ftruncate(fd, at + n) ? errno : 0;
}

int64_t os_lseek(int fd, int64_t at, int from)
{
    return _lseeki64(fd, at, from);
}

int fsync(int fd)
{
    if (FlushFileBuffers(win_handle(fd))) return 0;
    const DWORD e = GetLastError();
    if (e != ERROR_ACCESS_DENIED && e != ERROR_INVALID_HANDLE)
        return fail_as(e);
    errno = EINVAL;                      /* opened for reading, or a pipe */
    return -1;
}

static OVERLAPPED at_place(int64_t at)
{
    OVERLAPPED o = {0};
    o.Offset = (DWORD)at;
    o.OffsetHigh = (DWORD)(at >> 32);
    return o;
}

/* Unlike POSIX's these move the place of the descriptor: it is put back. */
static ssize_t at_offset(int fd, void *p, size_t n, off_t at, bool writes)
{
    const int64_t here = _lseeki64(fd, 0, SEEK_CUR);
    const DWORD piece = n < 1u << 30 ? (DWORD)n : 1u << 30;
    OVERLAPPED o = at_place(at);
    DWORD done = 0;
    const bool ok = writes ? WriteFile(win_handle(fd), p, piece, &done, &o)
                           : ReadFile(win_handle(fd), p, piece, &done, &o);
    const DWORD e = GetLastError();
    _lseeki64(fd, here, SEEK_SET);
    if (ok) return (ssize_t)done;
    return e == ERROR_HANDLE_EOF ? 0 : fail_as(e);
}

ssize_t pread(int fd, void *p, size_t n, off_t at)
{
    return at_offset(fd, p, n, at, false);
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    return at_offset(fd, (void *)(uintptr_t)p, n, at, true);
}

int fcntl(int fd, int what, ...)
{
    return what == F_DUPFD_CLOEXEC ? _dup(fd) : 0;
}

/* One byte beyond every file: locks of Windows keep readers out. */
int flock(int fd, int how)
{
    const HANDLE h = win_handle(fd);
    OVERLAPPED o = at_place(INT64_C(1) << 62);
    if (how & LOCK_UN) return win_as(UnlockFileEx(h, 0, 1, 0, &o));
    return win_as(LockFileEx(h, (how & LOCK_EX ? LOCKFILE_EXCLUSIVE_LOCK : 0)
                         | (how & LOCK_NB ? LOCKFILE_FAIL_IMMEDIATELY : 0), 0,
                         1, 0, &o));
}

/* ---- files that the program makes up a name for -------------------------- */

static void name_it(char *pattern)
{
    static LONG turn;
    unsigned h = (unsigned)GetCurrentProcessId() * 2654435761u
               + (unsigned)InterlockedIncrement(&turn) * 2246822519u
               + (unsigned)GetTickCount64() * 40503u;
    for (char *c = pattern + strlen(pattern) - 6; *c; c++, h = h * 69069 + 1)
        *c = "abcdefghijklmnopqrstuvwxyz012345"[h >> 27];
}

int mkstemp(char *pattern)
{
    name_it(pattern);
    made.fd = os_open(pattern, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC);
    made.going = NULL;
    snprintf(made.path, sizeof made.path, "%s", made.fd >= 0 ? pattern : "");
    return made.fd;
}

char *mkdtemp(char *pattern)
{
    name_it(pattern);
    return os_mkdir(pattern, 0700) ? NULL : pattern;
}

FILE *os_tmpfile(void)
{
    char name[] = "/tmp/tether-XXXXXX";
    name_it(name);
    const int fd = os_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC
                           | _O_TEMPORARY);
    FILE *f = fd >= 0 ? _fdopen(fd, "w+b") : NULL;
    if (fd >= 0 && !f) _close(fd);
    return f;
}

/* ---- directories and disks ----------------------------------------------- */

struct os_dir {
    HANDLE h;
    bool more;
    WIN32_FIND_DATAW found;
    struct dirent entry;
};

DIR *opendir(const char *path)
{
    char all[4096];
    win_name w;
    struct os_stat st;
    if (os_stat(path, &st)) return NULL;
    if (!S_ISDIR(st.st_mode)) return errno = ENOTDIR, NULL;
    snprintf(all, sizeof all, "%s/*", path);
    const wchar_t *name = win_wide(&w, all);
    DIR *d = name ? calloc(1, sizeof *d) : NULL;
    if (!d) return NULL;
    d->h = FindFirstFileW(name, &d->found);
    d->more = d->h != INVALID_HANDLE_VALUE;
    if (d->more) return d;
    win_failed();
    free(d);
    return NULL;
}

struct dirent *readdir(DIR *d)
{
    if (!d->more) return NULL;
    win_narrow(d->entry.d_name, sizeof d->entry.d_name, d->found.cFileName);
    d->more = FindNextFileW(d->h, &d->found);
    return &d->entry;
}

int closedir(DIR *d)
{
    FindClose(d->h);
    free(d);
    return 0;
}

int alphasort(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

int scandir(const char *path, struct dirent ***list,
            int (*wanted)(const struct dirent *),
            int (*order)(const struct dirent **, const struct dirent **))
{
    DIR *d = opendir(path);
    struct dirent **all = NULL, *e;
    int n = 0;
    while (d && (e = readdir(d))) {
        if (wanted && !wanted(e)) continue;
        all = realloc(all, ((size_t)n + 1) * sizeof *all);
        all[n] = malloc(sizeof **all);
        *all[n++] = *e;
    }
    if (!d) return -1;
    closedir(d);
    if (n) qsort(all, (size_t)n, sizeof *all,
                 (int (*)(const void *, const void *))(uintptr_t)order);
    *list = all;
    return n;
}

int statvfs(const char *path, struct statvfs *v)
{
    win_name w;
    ULARGE_INTEGER left;
    const wchar_t *name = win_wide(&w, path);
    if (!name || !GetDiskFreeSpaceExW(name, &left, NULL, NULL))
        return win_failed();
    *v = (struct statvfs){left.QuadPart, 1};
    return 0;
}

/* [abc], [a-c], [!a], after the bracket; NULL: `c` is not in it. */
static const char *in_set(const char *p, char c)
{
    const bool not = *p == '!' || *p == '^';
    bool in = false;
    for (const char *begin = p += not; *p && (*p != ']' || p == begin); p++) {
        const bool range = p[1] == '-' && p[2] && p[2] != ']';
        if (range ? c >= p[0] && c <= p[2] : c == *p) in = true;
        if (range) p += 2;
    }
    return in == not ? NULL : *p ? p + 1 : p;
}

int fnmatch(const char *p, const char *s, int flags)
{
    for (; *p; s++) {
        if (*p == '*') {
            while (*p == '*') p++;
            for (; fnmatch(p, s, flags); s++)
                if (!*s) return 1;
            return 0;
        }
        if (!*s) return 1;
        if (*p == '[') {
            p = in_set(p + 1, *s);
            if (!p) return 1;
            continue;
        }
        const bool any = *p == '?';
        if (*p == '\\' && p[1]) p++;
        if (*p++ != *s && !any) return 1;
    }
    return *s != 0;
}
