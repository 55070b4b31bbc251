/* test_disk.c: every command on disks that are too small.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Property  however much room there is, a command ends with status 0 and all
 *           its files, or with 1 and one error that names the file and the
 *           reason. Under a final name is what the command makes with room, or
 *           nothing, or what was there before. No temporary file is left. With
 *           room again, the same command (with --resume where it knows that)
 *           makes the same bytes.
 * DISK      unset: some limits for the size of a file, of a few commands. Else
 *           every command of ROWS, with such limits from nearly nothing to the
 *           largest file, and on file systems (tmpfs) of 4 kB and more, until
 *           one is large enough. They are mounted where no one else sees them,
 *           by root or in a user's name space. */
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "tests/faults/command.h"

#ifdef __linux__
#include <sched.h>
#include <sys/mount.h>
#endif

enum { PAGE = 4096, CAPACITY = 64 << 20 };
static bool every, mounted;
static long most;                /* bytes of a file in the next command; 0:
                                  * no limit                                  */

/* ---- disks --------------------------------------------------------------- */

static void limit_files(void)
{
    struct rlimit r;
    if (!most || getrlimit(RLIMIT_FSIZE, &r)) return;
    r.rlim_cur = (rlim_t)most;
    setrlimit(RLIMIT_FSIZE, &r);
}

#ifdef __linux__
static bool put_text(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    const bool put = fd >= 0 && write(fd, text, strlen(text)) > 0;
    if (fd >= 0) close(fd);
    return put;
}

/* Mounts of our own: root's, or those of a user who is root in there. */
static bool may_mount(void)
{
    char map[64];
    snprintf(map, sizeof map, "0 %ld 1", (long)getuid());
    if (unshare(CLONE_NEWNS)
        && (unshare(CLONE_NEWUSER | CLONE_NEWNS)
            || !put_text("/proc/self/uid_map", map))) return false;
    return !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

/* The folder "got" has so many bytes. */
static bool set_disk(long bytes)
{
    char size[64];
    snprintf(size, sizeof size, "size=%ld,mode=0700", bytes);
    mkdir(below("got"), 0700);
    const bool ok = !mount("none", below("got"), "tmpfs",
                           mounted ? MS_REMOUNT : 0, size);
    mounted = mounted || ok;
    return ok;
}

static void remove_disk(void)
{
    if (mounted) umount(below("got"));
    mounted = false;
}
#else
static bool may_mount(void) { return false; }
static bool set_disk(long bytes) { return !bytes; }
static void remove_disk(void) {}
#endif

static void make_space(void)
{
    most = 0;
    if (mounted) expect(set_disk(CAPACITY), "a file system with room");
}

/* Bytes used, in pages. */
static long used(void)
{
    struct statvfs s;
    if (statvfs(below("got"), &s)) return 0;
    return (long)((s.f_blocks - s.f_bfree) * s.f_frsize);
}

/* ---- one size ------------------------------------------------------------ */

/* Does the error name a file and the reason? */
static const char *check_words(void)
{
    static const char *const reasons[] = {"No space left", "File too large"};
    const char *error = strstr(said, "tether: error:");
    bool reason = false;
    for (int i = 0; error && i < 2; i++)
        reason = reason || strstr(error, reasons[i]);
    if (!reason && error && strstr(error, "videos failed"))
        reason = strstr(said, "failed: cannot write ") != NULL;
    else if (reason && !strstr(error, "cannot write")
             && !strstr(error, "cannot create"))
        return "the error does not say what cannot be written";
    return reason ? NULL : "the error does not say why";
}

/* One run where there is too little room, maybe. True: there was enough, and
 * nothing was said. */
static bool one_size(const row *r, const char *kind, long bytes)
{
    static char first[2000];
    const int status = run("got", r->command, "");
    snprintf(first, sizeof first, "%.1990s", said);
    const bool enough = !status && !strstr(said, "warning:");
    const char *bad = verdict(r, status), *again = NULL;
    if (!bad && status) bad = check_words();
    if (!bad && !status) bad = wrong_file("", false);
    if (!bad && status) again = check_again(r);
    expect(!bad && !again, "%s, %s of %ld bytes: status %d: %s: %s", r->name,
           kind, bytes, status, bad ? bad : again ? again : "",
           again ? said : first);
    if (getenv("DISK_SAYS"))
        fprintf(stderr, "%s %ld: %d %s\n", kind, bytes, status, first);
    empty(below("got"));
    return enough;
}

/* ---- one command --------------------------------------------------------- */

/* Bytes of the files in want/`in`; the largest of them. */
static long size_of(const char *in, long *largest)
{
    char path[1200];
    long sum = 0;
    snprintf(path, sizeof path, "%s/%s", below("want"), in);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        char name[1600], inner[1000];
        struct stat st;
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        snprintf(inner, sizeof inner, "%.600s/%s", in, e->d_name);
        if (is_dots(e->d_name) || stat(name, &st)) continue;
        if (S_ISDIR(st.st_mode)) {
            sum += size_of(inner, largest);
            continue;
        }
        sum += (long)st.st_size;
        if ((long)st.st_size > *largest) *largest = (long)st.st_size;
    }
    if (d) closedir(d);
    return sum;
}

/* No file may be larger than the limit: `n` limits below the largest file. */
static void limits(const row *r, long largest, long n)
{
    const long step = 1 + largest / n;
    for (long k = every ? 1 : step / 2 + 1; k < largest; k += step) {
        most = k;
        one_size(r, "files", k);
        most = 0;
    }
    if (!every) return;
    most = largest - 1;
    one_size(r, "files", most);
    most = 0;
}

/* File systems of one page and more, until one is large enough. */
static void disks(const row *r, long sum)
{
    enum { SIZES = 48 };
    const long step = 1 + sum / PAGE / SIZES, end = 100 + 4 * sum / PAGE;
    long pages = 1;
    bool enough = false;
    for (; !enough && pages < end; pages += step) {
        if (!expect(set_disk(pages * PAGE), "a file system of %ld pages: %s",
                    pages, strerror(errno))) return;
        enough = one_size(r, "a disk", pages * PAGE);
    }
    expect(enough, "%s: no disk is large enough", r->name);
    fprintf(stderr, "%s: %ld bytes in files, disks up to %ld\n", r->name, sum,
            (pages - step) * PAGE);
}

/* Where all is there and no byte is free, --overwrite loses nothing. */
static void full_disk(const row *r)
{
    if (!strstr(r->command, "--overwrite")) return;
    make_space();
    expect(!run("got", r->command, "") && set_disk(used()),
           "%s: a disk without room: %s", r->name, strerror(errno));
    const int status = run("got", r->command, "");
    const char *bad = verdict(r, status);
    if (!bad && !complete("")) bad = "a file that was there is lost";
    if (!bad && status) bad = check_again(r);
    expect(!bad, "%s, all is there and the disk is full: status %d: %s: %s",
           r->name, status, bad ? bad : "", said);
    empty(below("got"));
}

static void one_row(const row *r, bool on_disks)
{
    long largest = 0;
    if (row_begin(r)) {
        const long sum = size_of("", &largest);
        limits(r, largest, every ? 24 : 3);
        if (on_disks) {
            disks(r, sum);
            full_disk(r);
            remove_disk();
        }
    }
    row_end();
}

int main(int argc, char **argv)
{
    static const char sample[] = "generate convert validate";
    (void)argc;
    every = getenv("DISK") != NULL;
    before_run = limit_files;
    before_again = make_space;
    if (command_begin("faults/disk", argv, "tether")) {
        const bool disk = every && may_mount();
        if (every && !disk)
            skip("full disks: this system lets no one mount a file system "
                 "here (%s); only the sizes of files are limited",
                 strerror(errno));
        if (!every) setenv("ROWS", sample, 1);
        for (int i = 0; i < ROWS; i++)
            if (chosen(&rows[i])) one_row(&rows[i], disk);
    }
    return command_end();
}
