/* bench-fs DIR ROW COUNT: times one kind of operation in a directory, and prints one number.
 * bench-fs DIR prepare COUNT MIB: makes what the rows read, to be run beside the view, so that a view that
 * is mounted afterwards has seen none of it.
 * bench-fs DIR make-tree COUNT: files with text, for the workloads of `run`.
 * bench-fs DIR make-many COUNT, bench-fs DIR walk|walk-missing FIRST END: for bench-scale.
 *
 * What is timed is a loop of system calls alone; what a row makes, it removes again. The number is microseconds
 * for each operation, or MB/s for the rows that move data (their COUNT is in MiB). The loops are bounded by COUNT;
 * nothing here decides whether a figure is good. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MIB	   (1024 * 1024)
#define BLOCK	   4096
#define SMALL_FILE 1024

#define N_ELEMENTS(array) (sizeof(array) / sizeof(array)[0])

static __attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...)
{
	va_list arguments;

	fputs("bench-fs: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, ": %m\n");
	exit(1);
}

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int open_at(int dir, const char *name, int flags)
{
	int fd = openat(dir, name, flags | O_CLOEXEC, 0644);

	if (fd < 0)
		die("open %s", name);
	return fd;
}

static int make_dir(int dir, const char *name)
{
	if (mkdirat(dir, name, 0755) != 0)
		die("mkdir %s", name);
	return open_at(dir, name, O_RDONLY | O_DIRECTORY);
}

static const char *numbered(const char *prefix, unsigned int number)
{
	static char name[64];

	snprintf(name, sizeof name, "%s%u", prefix, number);
	return name;
}

static void write_small(int dir, const char *name, int flags)
{
	static const char data[SMALL_FILE] = "some text\n";
	int fd = open_at(dir, name, O_WRONLY | flags);

	if (write(fd, data, sizeof data) != (ssize_t)sizeof data || close(fd) != 0)
		die("write %s", name);
}

static void make_small(int dir, const char *prefix, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		write_small(dir, numbered(prefix, i), O_CREAT | O_EXCL);
}

static void remove_small(int dir, const char *prefix, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (unlinkat(dir, numbered(prefix, i), 0) != 0)
			die("unlink %s%u", prefix, i);
}

static void make_big(int dir, const char *name, unsigned int mib)
{
	static char data[MIB];
	int fd = open_at(dir, name, O_WRONLY | O_CREAT | O_EXCL);

	memset(data, 'x', MIB);
	for (unsigned int i = 0; i < mib; i++)
		if (write(fd, data, MIB) != MIB)
			die("write %s", name);
	(void)fsync(fd); /* so that nothing is written back while something else is timed */
	close(fd);
}

/* The same directories and files in every source. */
static void prepare(int dir, unsigned int count, unsigned int mib)
{
	static const char *const listed[] = { "stat", "open", "list" };

	for (size_t i = 0; i < N_ELEMENTS(listed); i++) {
		int sub = make_dir(dir, listed[i]);

		make_small(sub, "f", count);
		close(sub);
	}
	close(make_dir(dir, "missing"));
	close(make_dir(dir, "work"));
	make_big(dir, "big", mib);
	make_big(dir, "big-to-write", mib);
}

/* --- data --- */

/* Twice, of which the second time counts: the first brings the pages in. */
static double read_whole(int dir, unsigned int mib)
{
	static char data[MIB / 8];
	double start = 0;

	for (int pass = 0; pass < 2; pass++) {
		int fd = open_at(dir, "big", O_RDONLY);
		ssize_t n, all = 0;

		start = now_us();
		while (all < (ssize_t)mib * MIB && (n = read(fd, data, MIB / 8)) > 0)
			all += n;
		if (all != (ssize_t)mib * MIB)
			die("read big");
		start = now_us() - start;
		close(fd);
	}
	return (double)mib * MIB / start;
}

static double write_whole(int dir, unsigned int mib)
{
	static char data[MIB / 8];
	int fd = open_at(dir, "big-to-write", O_WRONLY);
	double start;

	memset(data, 'y', MIB / 8);
	start = now_us();
	for (unsigned int i = 0; i < mib * 8; i++)
		if (write(fd, data, MIB / 8) != MIB / 8)
			die("write big-to-write");
	start = now_us() - start;
	close(fd);
	return (double)mib * MIB / start;
}

/* Blocks of a file in an order that is the same every time. */
static off_t random_block(unsigned int *state, off_t size)
{
	*state = *state * 1664525u + 1013904223u;
	return (off_t)(*state >> 4) % (size / BLOCK) * BLOCK;
}

static double blocks(int dir, const char *name, int flags, unsigned int count)
{
	char data[BLOCK] = "z";
	int fd = open_at(dir, name, flags);
	unsigned int state = 1;
	struct stat st;
	double start;

	if (fstat(fd, &st) != 0)
		die("stat %s", name);
	start = now_us();
	for (unsigned int i = 0; i < count; i++) {
		off_t at = random_block(&state, st.st_size);
		ssize_t n = flags == O_RDONLY ? pread(fd, data, BLOCK, at)
					      : pwrite(fd, data, BLOCK, at);

		if (n != BLOCK)
			die("block of %s", name);
	}
	start = now_us() - start;
	close(fd);
	return start / count;
}

static double read_blocks(int dir, unsigned int count)
{
	(void)blocks(dir, "big", O_RDONLY, count);
	return blocks(dir, "big", O_RDONLY, count);
}

static double write_blocks(int dir, unsigned int count)
{
	return blocks(dir, "big-to-write", O_WRONLY, count);
}

static double map_whole(int dir, unsigned int mib)
{
	size_t size = (size_t)mib * MIB;
	unsigned int sum = 0;
	double start = 0;

	for (int pass = 0; pass < 2; pass++) {
		int fd = open_at(dir, "big", O_RDONLY);
		const unsigned char *map;

		start = now_us();
		map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
		if (map == MAP_FAILED)
			die("mmap big");
		for (size_t i = 0; i < size; i += 64)
			sum += map[i];
		start = now_us() - start;
		munmap((void *)(uintptr_t)map, size);
		close(fd);
	}
	return sum == 1 ? 0 : (double)size / start; /* so that the loop is not left out */
}

/* --- names --- */

static double create_files(int dir, unsigned int count)
{
	int work = open_at(dir, "work", O_RDONLY | O_DIRECTORY);
	double start = now_us();

	make_small(work, "c", count);
	start = now_us() - start;
	remove_small(work, "c", count);
	close(work);
	return start / count;
}

static double unlink_files(int dir, unsigned int count)
{
	int work = open_at(dir, "work", O_RDONLY | O_DIRECTORY);
	double start;

	make_small(work, "u", count);
	start = now_us();
	remove_small(work, "u", count);
	start = now_us() - start;
	close(work);
	return start / count;
}

static double rename_files(int dir, unsigned int count)
{
	int work = open_at(dir, "work", O_RDONLY | O_DIRECTORY);
	double start;
	char to[64];

	make_small(work, "r", count);
	start = now_us();
	for (unsigned int i = 0; i < count; i++) {
		snprintf(to, sizeof to, "to%u", i);
		if (renameat(work, numbered("r", i), work, to) != 0)
			die("rename to %s", to);
	}
	start = now_us() - start;
	remove_small(work, "to", count);
	close(work);
	return start / count;
}

static double make_dirs(int dir, unsigned int count)
{
	int work = open_at(dir, "work", O_RDONLY | O_DIRECTORY);
	double start = now_us();

	for (unsigned int i = 0; i < count; i++)
		if (mkdirat(work, numbered("d", i), 0755) != 0)
			die("mkdir");
	start = now_us() - start;
	for (unsigned int i = 0; i < count; i++)
		if (unlinkat(work, numbered("d", i), AT_REMOVEDIR) != 0)
			die("rmdir");
	close(work);
	return start / count;
}

static double open_files(int dir, unsigned int count)
{
	int files = open_at(dir, "open", O_RDONLY | O_DIRECTORY);
	char data[SMALL_FILE];
	double start = now_us();

	for (unsigned int i = 0; i < count; i++) {
		int fd = open_at(files, numbered("f", i), O_RDONLY);

		if (read(fd, data, sizeof data) != (ssize_t)sizeof data)
			die("read");
		close(fd);
	}
	start = now_us() - start;
	close(files);
	return start / count;
}

static double open_again(int dir, unsigned int count)
{
	(void)open_files(dir, count);
	return open_files(dir, count);
}

static double open_one(int dir, unsigned int count)
{
	int files = open_at(dir, "open", O_RDONLY | O_DIRECTORY);
	double start = now_us();

	for (unsigned int i = 0; i < count; i++)
		close(open_at(files, "f0", O_RDONLY));
	start = now_us() - start;
	close(files);
	return start / count;
}

static double stat_files(int dir, unsigned int count)
{
	int files = open_at(dir, "stat", O_RDONLY | O_DIRECTORY);
	double start = now_us();
	struct stat st;

	for (unsigned int i = 0; i < count; i++)
		if (fstatat(files, numbered("f", i), &st, 0) != 0)
			die("stat");
	start = now_us() - start;
	close(files);
	return start / count;
}

static double stat_again(int dir, unsigned int count)
{
	(void)stat_files(dir, count);
	return stat_files(dir, count);
}

/* Attributes that no cache may answer: a request each. */
static double get_attributes(int dir, unsigned int count)
{
	int fd = open_at(dir, "stat/f0", O_PATH);
	double start = now_us();
	struct statx stx;

	for (unsigned int i = 0; i < count; i++)
		if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &stx) !=
		    0)
			die("statx");
	start = now_us() - start;
	close(fd);
	return start / count;
}

static double missing(int dir, unsigned int count)
{
	int files = open_at(dir, "missing", O_RDONLY | O_DIRECTORY);
	double start = now_us();
	struct stat st;

	for (unsigned int i = 0; i < count; i++)
		if (fstatat(files, numbered("m", i), &st, 0) == 0)
			die("a missing file is there");
	start = now_us() - start;
	close(files);
	return start / count;
}

static double missing_again(int dir, unsigned int count)
{
	(void)missing(dir, count);
	return missing(dir, count);
}

static double list(int dir, unsigned int count)
{
	unsigned int entries = 0;
	double start = now_us();

	while (entries < count) {
		DIR *stream = fdopendir(open_at(dir, "list", O_RDONLY | O_DIRECTORY));

		if (!stream)
			die("opendir list");
		while (readdir(stream))
			entries++;
		closedir(stream);
	}
	return (now_us() - start) / entries;
}

/* --- trees --- */

/* Empty files. */
#define MANY_IN_ONE 1000

static void make_many(int dir, unsigned int count)
{
	int sub = -1;

	for (unsigned int i = 0; i < count; i++) {
		if (i % MANY_IN_ONE == 0) {
			if (sub >= 0)
				close(sub);
			sub = make_dir(dir, numbered("d", i / MANY_IN_ONE));
		}
		close(open_at(sub, numbered("f", i), O_WRONLY | O_CREAT | O_EXCL));
	}
	if (sub >= 0)
		close(sub);
}

#define TREE_IN_ONE 25

/* Text as source code has it: directories of 25 files of some hundred to some thousand bytes. */
static void make_tree(int dir, unsigned int count)
{
	int sub = -1;

	for (unsigned int i = 0; i < count; i++) {
		FILE *file;

		if (i % TREE_IN_ONE == 0) {
			if (sub >= 0)
				close(sub);
			sub = make_dir(dir, numbered("part", i / TREE_IN_ONE));
		}
		file = fdopen(open_at(sub, numbered("file", i), O_WRONLY | O_CREAT | O_EXCL), "w");
		if (!file)
			die("make-tree");
		for (unsigned int line = 0; line < 10 + i * 37 % 100; line++)
			fprintf(file, "line %u of file %u says something else\n", line, i);
		if (fclose(file) != 0)
			die("make-tree");
	}
	if (sub >= 0)
		close(sub);
}

#define PARTS 10

static int compare_numbers(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Each name from `first` to below `end` looked up once: the median of ten parts, for whatever else the machine does
 * for a moment is not the cost of a lookup. */
static double walk(int dir, bool there, unsigned int first, unsigned int end)
{
	double parts[PARTS];
	struct stat st;
	char path[64];

	for (unsigned int part = 0; part < PARTS; part++) {
		unsigned int from = first + (end - first) / PARTS * part;
		unsigned int to = part + 1 < PARTS ? from + (end - first) / PARTS : end;
		double start = now_us();

		for (unsigned int i = from; i < to; i++) {
			snprintf(path, sizeof path, there ? "many/d%u/f%u" : "missing/m%u-%u",
				 i / MANY_IN_ONE, i);
			if ((fstatat(dir, path, &st, 0) == 0) != there)
				die("stat %s", path);
		}
		parts[part] = (now_us() - start) / (to - from);
	}
	qsort(parts, PARTS, sizeof parts[0], compare_numbers);
	return parts[PARTS / 2];
}

typedef struct {
	const char *name;
	double (*run)(int dir, unsigned int count);
} Row;

static const Row rows[] = {
	/* those that look at what the view has never seen come first */
	{ "stat-cold", stat_files },
	{ "stat-warm", stat_again },
	{ "missing-first", missing },
	{ "missing-again", missing_again },
	{ "open-first", open_files },
	{ "open-again", open_again },
	{ "open-close", open_one },
	{ "getattr", get_attributes },
	{ "list", list },
	{ "create", create_files },
	{ "rename", rename_files },
	{ "unlink", unlink_files },
	{ "mkdir", make_dirs },
	{ "read", read_whole },
	{ "write", write_whole },
	{ "read-4k", read_blocks },
	{ "write-4k", write_blocks },
	{ "mmap", map_whole },
};

int main(int argc, char **argv)
{
	unsigned int count;
	int dir;

	if (argc < 4) {
		fprintf(stderr, "usage: bench-fs DIR ROW COUNT\n");
		return 2;
	}
	count = (unsigned int)strtoul(argv[3], NULL, 10);
	dir = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		die("%s", argv[1]);
	umask(022);
	if (strcmp(argv[2], "prepare") == 0 && argc == 5) {
		prepare(dir, count, (unsigned int)strtoul(argv[4], NULL, 10));
		return 0;
	}
	if (strcmp(argv[2], "make-many") == 0) {
		make_many(dir, count);
		return 0;
	}
	if (strcmp(argv[2], "make-tree") == 0) {
		make_tree(dir, count);
		return 0;
	}
	if (argc == 5 && (strcmp(argv[2], "walk") == 0 || strcmp(argv[2], "walk-missing") == 0)) {
		printf("%.3f\n", walk(dir, strcmp(argv[2], "walk") == 0, count,
				      (unsigned int)strtoul(argv[4], NULL, 10)));
		return 0;
	}
	for (size_t i = 0; i < N_ELEMENTS(rows); i++) {
		if (strcmp(argv[2], rows[i].name) == 0) {
			printf("%.3f\n", rows[i].run(dir, count));
			return 0;
		}
	}
	errno = EINVAL;
	die("row %s", argv[2]);
}
