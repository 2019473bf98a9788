/* SPDX-License-Identifier: MIT */
#include "rootfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "mnt.h"
#include "overlay.h"
#include "path.h"
#include "upper.h"

enum {
	MOUNTINFO_MAX = 16 << 20,
	RESOLV_MAX = 65536
};

/* What the sandbox has of its own. */
static const char *const own[] = { "/proc", "/sys", "/dev", "/run", "/tmp",
	"/var/tmp", NULL };

static char *
join(const char *a, const char *b)
{
	return xasprintf("%s%s", strcmp(a, "/") == 0 ? "" : a, b);
}

/* Opens statefd/name, making it and its parents. */
static int
make_dirs(int statefd, const char *name, mode_t mode)
{
	struct buf part = BUF_INIT;

	for (const char *p = name; *p != '\0';) {
		p += strcspn(p, "/");
		buf_cut(&part, 0);
		buf_add(&part, name, (size_t)(p - name));
		if (mkdirat(statefd, buf_str(&part), mode) == -1 &&
		    errno != EEXIST) {
			buf_release(&part);
			return -1;
		}
		p += strspn(p, "/");
	}
	buf_release(&part);
	return path_open(statefd, name, O_RDONLY | O_DIRECTORY, 0);
}

/*
 * Opens the upperdir statefd/name. One that is new gets owner, mode and xattrs
 * of lower before it has its name: who is killed halfway leaves none.
 */
static int
open_upper(int statefd, const char *name, int lower)
{
	char *new = xasprintf("%s.new", name);
	int fd = path_open(statefd, name, O_RDONLY | O_DIRECTORY, 0);

	if (fd == -1 && errno == ENOENT) {
		fd = make_dirs(statefd, new, 0700);
		if (fd != -1 &&
		    (upper_dress_as(fd, lower) == -1 ||
			renameat(statefd, new, statefd, name) == -1))
			io_drop(&fd);
	}
	free(new);
	return fd;
}

/* An overlay over the directory from at to, its upper side in statefd/name. */
static int
put_overlay(const struct rootfs *r, const char *from, const char *to,
    const char *name, struct buf *why)
{
	char *upper = xasprintf("%s/upper", name);
	char *work = xasprintf("%s/work", name);
	struct buf kernel = BUF_INIT;
	int lower, at, fd[2] = { -1, -1 }, rc = -1;

	lower = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	at = open(to, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	fd[1] = make_dirs(r->statefd, work, 0700);
	if (lower != -1 && fd[1] != -1)
		fd[0] = open_upper(r->statefd, upper, lower);
	if (lower == -1 || at == -1 || fd[0] == -1 || fd[1] == -1)
		buf_failed(why, "unable to prepare an overlay over %s", from);
	else if (overlay_mount(
		     &lower, 1, fd[0], fd[1], at, OVERLAY_AUTO, &kernel) == -1)
		buf_failed(why, "unable to mount an overlay over %s%s%s", from,
		    kernel.len ? ": the kernel says: " : "", buf_str(&kernel));
	else
		rc = mnt_attr(AT_FDCWD, to, false, MOUNT_ATTR_NODEV, 0, why);
	io_drop(&lower);
	io_drop(&at);
	io_drop(&fd[0]);
	io_drop(&fd[1]);
	buf_release(&kernel);
	free(upper);
	free(work);
	return rc;
}

/* ---- the mounts below source ---- */

struct place {
	char *path; /* below source */
	bool readonly;
};

struct places {
	struct place *v;
	size_t n;
};

/* proc(5): blanks, newlines and backslashes are "\ooo". */
static void
unescape(char *s)
{
	char *out = s;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] &&
		    s[3]) {
			*out++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 |
			    (s[3] - '0'));
			s += 3;
		} else {
			*out++ = *s;
		}
	}
	*out = '\0';
}

static bool
is_own(const struct rootfs *r, const char *rel)
{
	for (const char *const *p = own; *p; p++)
		if (path_is_below(rel, *p))
			return true;
	for (size_t i = 0; i < r->nmasks; i++)
		if (path_is_below(rel, r->mask[i]))
			return true;
	return r->home && path_is_below(rel, r->home);
}

/* Is the mount of that number what one finds at the path? */
static bool
is_seen(const char *path, uint64_t id)
{
	struct statx st;

	return statx(AT_FDCWD, path,
		   AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
		   STATX_MNT_ID, &st) == 0 &&
	    (st.stx_mask & STATX_MNT_ID) && st.stx_mnt_id == id;
}

/* Notes the mounts below source, in the order in which they were made. */
static int
read_places(const struct rootfs *r, struct places *out, struct buf *why)
{
	const char *base = strcmp(r->source, "/") == 0 ? "" : r->source;
	struct buf text = BUF_INIT;
	char *line, *rest;

	if (io_read_file_at(
		AT_FDCWD, "/proc/self/mountinfo", &text, MOUNTINFO_MAX) == -1)
		return buf_failed(why, "unable to read the list of mounts");
	rest = text.data;
	while (rest && (line = strsep(&rest, "\n"))) {
		char *word[6], *save = line;
		struct statvfs vfs;
		const char *rel;
		size_t n = 0;

		while (n < 6 && (word[n] = strsep(&save, " ")))
			n++;
		if (n < 6)
			continue;
		unescape(word[4]);
		if (!path_is_below(word[4], base))
			continue;
		rel = word[4] + strlen(base);
		if (*rel == '\0' || strcmp(rel, "/") == 0 || is_own(r, rel) ||
		    path_is_below(word[4], r->target) ||
		    !is_seen(word[4], strtoull(word[0], NULL, 10)))
			continue;
		out->v = xreallocarray(out->v, out->n + 1, sizeof *out->v);
		out->v[out->n++] = (struct place){
			.path = xstrdup(rel),
			.readonly = statvfs(word[4], &vfs) == 0 &&
			    (vfs.f_flag & ST_RDONLY),
		};
	}
	buf_release(&text);
	return 0;
}

static void
release_places(struct places *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->v[i].path);
	free(p->v);
}

/* A name for the path, without slashes. */
static char *
flat(const char *path)
{
	struct buf b = BUF_INIT;

	buf_adds(&b, "mounts/");
	for (; *path != '\0'; path++) {
		if (*path == '/' || *path == '%')
			buf_addf(&b, "%%%02X", (unsigned)*path);
		else
			buf_addc(&b, *path);
	}
	return buf_steal(&b);
}

/*
 * Read-only, as it is. A mount with others on it that cannot be taken off is
 * bound with these.
 */
static int
put_bind(const char *from, const char *to, struct buf *why)
{
	struct buf first = BUF_INIT;
	int rc = mnt_bind(
	    from, to, false, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV, &first);

	if (rc == -1)
		rc = mnt_bind(
		    from, to, true, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV, why);
	buf_release(&first);
	return rc;
}

static void
put_places(
    const struct rootfs *r, const struct places *places, struct buf *readonly)
{
	for (size_t i = 0; i < places->n; i++) {
		const struct place *p = &places->v[i];
		char *from = join(r->source, p->path);
		char *to = join(r->target, p->path);
		char *name = flat(p->path);
		struct buf why = BUF_INIT;
		int rc = -1;

		/* Its longest component is a file name of ours. */
		if (!p->readonly && mnt_is_dir(from) && strlen(name) < NAME_MAX)
			rc = put_overlay(r, from, to, name, &why);
		if (rc == -1 &&
		    (put_bind(from, to, &why) == -1 || !p->readonly))
			buf_addf(readonly, "%s\n", p->path);
		buf_release(&why);
		free(name);
		free(to);
		free(from);
	}
}

/* ---- a root of pieces ---- */

static int
put_piece(const struct rootfs *r, const char *name, struct buf *why)
{
	char *from = xasprintf("/%s", name), *to = join(r->target, from);
	char link[PATH_BYTES_MAX + 1];
	struct buf first = BUF_INIT;
	struct stat st;
	int rc = -1, fd;
	ssize_t n;

	if (lstat(from, &st) == -1) {
		rc = 0;
	} else if (S_ISLNK(st.st_mode)) {
		fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		n = fd == -1 ? -1 : readlinkat(fd, name, link, PATH_BYTES_MAX);
		if (n > 0) {
			link[n] = '\0';
			rc = symlink(link, to);
		}
		io_drop(&fd);
	} else if (S_ISDIR(st.st_mode)) {
		rc = mkdir(to, 0755);
		if (rc == 0 && !is_own(r, from)) {
			char *flatname = flat(from);

			rc = st.st_uid == geteuid()
			    ? put_overlay(r, from, to, flatname, &first)
			    : -1;
			free(flatname);
			if (rc == -1)
				rc = mnt_bind(from, to, true,
				    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV, why);
		}
	} else if (S_ISREG(st.st_mode)) {
		fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		io_drop(&fd);
		rc = put_bind(from, to, why);
	} else {
		rc = 0;
	}
	if (rc == -1 && why->len == 0)
		buf_failed(why, "unable to make %s", to);
	buf_release(&first);
	free(to);
	free(from);
	return rc;
}

static int
put_pieces(const struct rootfs *r, struct buf *why)
{
	struct names v = NAMES_INIT;
	int fd, rc;

	if (mount("tmpfs", r->target, "tmpfs", MS_NODEV, "mode=755,size=16m") ==
	    -1)
		return buf_failed(why, "unable to mount a root");
	fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = names_read(fd, &v);
	if (rc == -1)
		buf_failed(why, "unable to read /");
	for (size_t i = 0; i < v.n && rc == 0; i++)
		rc = put_piece(r, v.name[i], why);
	names_release(&v);
	io_drop(&fd);
	return rc;
}

/* ---- what the sandbox has of its own ---- */

/* The directory name of the state, seen at path; which may be missing there. */
static int
put_state(const struct rootfs *r, const char *name, mode_t mode,
    const char *path, bool make, struct buf *why)
{
	char *to = join(r->target, path);
	int rc = -1, fd, tree = -1;

	if (make && mnt_make_path(to, why) == -1) {
		free(to);
		return -1;
	}
	if (!mnt_is_dir(to)) {
		free(to);
		return 0;
	}
	fd = make_dirs(r->statefd, name, 0700);
	if (fd != -1 && fchmod(fd, mode) == 0)
		tree = open_tree(fd, "",
		    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	if (tree == -1)
		buf_failed(why, "unable to make a private %s", path);
	else if (mnt_attr(tree, "", false, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID,
		     0, why) == 0)
		rc = mnt_attach(tree, to, why);
	io_drop(&tree);
	io_drop(&fd);
	free(to);
	return rc;
}

static int
put_own(const struct rootfs *r, struct buf *why)
{
	char *sys = join(r->target, "/sys"), *dev = join(r->target, "/dev");
	char *run = join(r->target, "/run"), *proc = join(r->target, "/proc");
	int rc = -1;

	if (mnt_make_path(proc, why) == 0 && mnt_make_path(sys, why) == 0 &&
	    mnt_make_path(dev, why) == 0 && mnt_make_path(run, why) == 0 &&
	    mnt_bind("/sys", sys, true,
		MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
		why) == 0 &&
	    mnt_devices(dev, why) == 0 &&
	    mnt_tmpfs(run, "mode=755,size=64m", 0, why) == 0 &&
	    put_state(r, "tmp", 01777, "/tmp", true, why) == 0 &&
	    put_state(r, "var-tmp", 01777, "/var/tmp", false, why) == 0)
		rc = r->home ? put_state(r, "home", 0700, r->home,
				   path_is_below(r->home, "/tmp") ||
				       path_is_below(r->home, "/run"),
				   why)
			     : 0;
	free(proc);
	free(run);
	free(dev);
	free(sys);
	return rc;
}

static int
put_masks(const struct rootfs *r, struct buf *why)
{
	int rc = 0;

	for (size_t i = 0; i < r->nmasks && rc == 0; i++) {
		char *path = join(r->target, r->mask[i]);

		if (mnt_is_dir(path))
			rc = mnt_cover(path, why);
		free(path);
	}
	return rc;
}

/*
 * The file that names the servers of names is often a link into /run, and is
 * none of an image's business. Without it names are not found, that is all.
 */
static void
put_resolv(const struct rootfs *r)
{
	char *etc = join(r->target, "/etc");
	struct buf text = BUF_INIT, to = BUF_INIT;
	bool image = strcmp(r->source, "/") != 0;
	int dirfd = -1, in = -1, out = -1;
	char link[PATH_BYTES_MAX + 1];
	ssize_t n;

	if (image && mnt_make_path(etc, &text) == -1)
		goto out;
	dirfd = open(etc, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	in = open("/etc/resolv.conf", O_RDONLY | O_CLOEXEC);
	n = readlinkat(dirfd, "resolv.conf", link, sizeof link - 1);
	if (dirfd == -1 || in == -1 || io_read_buf(in, &text, RESOLV_MAX) == -1)
		goto out;
	if (n > 0) {
		link[n] = '\0';
		if (strncmp(link, "../run/", 7) == 0)
			buf_addf(&to, "%s%s", r->target, link + 2);
		else if (strncmp(link, "/run/", 5) == 0)
			buf_addf(&to, "%s%s", r->target, link);
		if (to.len == 0 || strstr(to.data, "/../"))
			goto out;
		*strrchr(to.data, '/') = '\0';
		if (mnt_make_path(to.data, &text) == -1)
			goto out;
		to.data[strlen(to.data)] = '/';
		out = open(to.data,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	} else if (image) {
		out = openat(dirfd, "resolv.conf",
		    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
		    0644);
	}
	if (out != -1 && io_write_all(out, text.data, text.len) == -1)
		errno = 0;
out:
	io_drop(&out);
	io_drop(&in);
	io_drop(&dirfd);
	buf_release(&to);
	buf_release(&text);
	free(etc);
}

/* user_namespaces(7): has ours one id only? */
static bool
has_one_id(void)
{
	struct buf map = BUF_INIT;
	bool one;

	one =
	    io_read_file_at(AT_FDCWD, "/proc/self/uid_map", &map, 65536) == 0 &&
	    map.len > 3 && strcmp(map.data + map.len - 3, " 1\n") == 0 &&
	    strchr(map.data, '\n') == map.data + map.len - 1;
	buf_release(&map);
	return one;
}

/* apt wants to fetch as a user of its own, where there may be none. */
static void
put_apt(const struct rootfs *r)
{
	static const char text[] = "APT::Sandbox::User \"root\";\n";
	char *dir = join(r->target, "/etc/apt/apt.conf.d");
	int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int fd = -1;

	if (dirfd != -1 && has_one_id())
		fd = openat(dirfd, "90sb",
		    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
		    0644);
	if (fd != -1 && io_write_all(fd, text, sizeof text - 1) == -1)
		errno = 0;
	io_drop(&fd);
	io_drop(&dirfd);
	free(dir);
}

int
rootfs_make(const struct rootfs *r, struct buf *readonly, struct buf *why)
{
	mode_t old = umask(022);
	struct places places = { .v = NULL };
	bool pieces = false;
	int rc;

	rc = read_places(r, &places, why);
	if (rc == 0 &&
	    put_overlay(r, r->source, r->target, "mounts/%2F", why) == -1) {
		pieces = strcmp(r->source, "/") == 0;
		if (pieces)
			buf_cut(why, 0);
		rc = pieces ? put_pieces(r, why) : -1;
	}
	if (rc == 0 && !pieces)
		put_places(r, &places, readonly);
	if (rc == 0)
		rc = put_own(r, why);
	if (rc == 0)
		rc = put_masks(r, why);
	if (rc == 0) {
		put_resolv(r);
		if (strcmp(r->source, "/") != 0)
			put_apt(r);
	}
	release_places(&places);
	umask(old);
	return rc;
}

/* ---- going there ---- */

int
rootfs_enter(const char *root, int dirfd, const char *tree, const char *target,
    uint64_t bytes, struct buf *why)
{
	int fd = -1, proc = -1, rootfd, rc = -1;
	mode_t old = umask(0);
	char options[64] = "mode=1777";

	if (bytes > 0)
		snprintf(
		    options, sizeof options, "mode=1777,size=%" PRIu64, bytes);
	rootfd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = open_tree(dirfd, tree, OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	proc = open_tree(AT_FDCWD, "/proc", OPEN_TREE_CLOEXEC);
	if (rootfd == -1 || fd == -1 || proc == -1) {
		buf_failed(why, "unable to open %s",
		    rootfd == -1   ? root
			: fd == -1 ? tree
				   : "/proc");
		goto out;
	}
	/*
	 * pivot_root(2): the old root comes to lie on the new one. Paths that
	 * begin at / do not see it, and the current directory is in it.
	 */
	if (fchdir(rootfd) == -1 || syscall(SYS_pivot_root, ".", ".") == -1) {
		buf_failed(why, "unable to make %s the root", root);
		goto out;
	}
	if (mnt_attach(proc, "/proc", why) == -1 || mnt_proc_safe(why) == -1 ||
	    mnt_terminals("/dev/pts", why) == -1 ||
	    mnt_tmpfs("/dev/shm", options, 0, why) == -1 ||
	    mnt_put(fd, target, why) == -1)
		goto out;
	rc = umount2(".", MNT_DETACH);
	if (rc == -1)
		buf_failed(why, "unable to let go of the old root");
	else
		rc = chdir("/");
out:
	io_drop(&proc);
	io_drop(&fd);
	io_drop(&rootfd);
	umask(old);
	return rc;
}
