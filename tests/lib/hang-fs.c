/* hang-fs MOUNTPOINT: a file system that can be told to hang, as a server behind a network does.
 *
 * It has a directory with the files "0" to "9", of five bytes each, that can be read and written (what is written goes
 * nowhere). Prints a byte when it is mounted. Then each byte on its standard input is a command, acknowledged with
 * another one: 'h' all requests are left unanswered from now on, each in a thread of its own; 'g' they are answered,
 * and those that wait are. 'q' it unmounts and ends, as at the end of its input; what waits gets an error. It also ends
 * when it has hung for HANG_SECONDS: a test that waits for it without end could not even be killed.
 *
 * Root's only: it is mounted without the help of fusermount3, in the mount namespace that it is started in. */
#define FUSE_USE_VERSION 314

#include <errno.h>
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define HANG_SECONDS 30
#define FILES	     10
#define CONTENT	     "hello"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool hung; /* under lock */

static void wait_while_hung(void)
{
	pthread_mutex_lock(&lock);
	while (hung)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void set_hung(bool value)
{
	pthread_mutex_lock(&lock);
	hung = value;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void fill_stat(fuse_ino_t ino, struct stat *ret_st)
{
	memset(ret_st, 0, sizeof *ret_st);
	ret_st->st_ino = ino;
	ret_st->st_mode = ino == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644;
	ret_st->st_nlink = ino == FUSE_ROOT_ID ? 2 : 1;
	ret_st->st_size = ino == FUSE_ROOT_ID ? 0 : (off_t)strlen(CONTENT);
}

/* Nothing is cached: each call of a program is a request. */
static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param entry = { .generation = 1 };

	wait_while_hung();
	if (parent != FUSE_ROOT_ID || name[0] < '0' || name[0] > '9' || name[1] != '\0') {
		(void)fuse_reply_err(req, ENOENT);
		return;
	}
	entry.ino = (fuse_ino_t)(name[0] - '0') + 2;
	fill_stat(entry.ino, &entry.attr);
	(void)fuse_reply_entry(req, &entry);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st;

	(void)fi;
	wait_while_hung();
	fill_stat(ino, &st);
	(void)fuse_reply_attr(req, &st, 0);
}

static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
		       struct fuse_file_info *fi)
{
	(void)attr;
	(void)to_set;
	op_getattr(req, ino, fi);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	wait_while_hung();
	fi->direct_io = 1;
	(void)fuse_reply_open(req, fi);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		    struct fuse_file_info *fi)
{
	size_t length = strlen(CONTENT);

	(void)ino;
	(void)fi;
	wait_while_hung();
	if ((size_t)offset >= length)
		(void)fuse_reply_buf(req, NULL, 0);
	else
		(void)fuse_reply_buf(req, &CONTENT[offset],
				     size < length - (size_t)offset ? size
								    : length - (size_t)offset);
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset,
		     struct fuse_file_info *fi)
{
	(void)ino;
	(void)data;
	(void)offset;
	(void)fi;
	wait_while_hung();
	(void)fuse_reply_write(req, size);
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		       struct fuse_file_info *fi)
{
	char buffer[4096];
	size_t used = 0;

	(void)ino;
	(void)fi;
	wait_while_hung();
	for (off_t i = offset; i < FILES; i++) {
		const char name[] = { (char)('0' + i), '\0' };
		struct stat st;
		size_t need;

		fill_stat((fuse_ino_t)i + 2, &st);
		need = fuse_add_direntry(req, buffer + used, sizeof buffer - used, name, &st,
					 i + 1);
		if (used + need > size || used + need > sizeof buffer)
			break;
		used += need;
	}
	(void)fuse_reply_buf(req, buffer, used);
}

static const struct fuse_lowlevel_ops ops = {
	.lookup = op_lookup,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.open = op_open,
	.read = op_read,
	.write = op_write,
	.readdir = op_readdir,
};

static void *serve(void *data)
{
	struct fuse_session *session = data;
	struct fuse_loop_config *config = fuse_loop_cfg_create();

	/* Whatever is unanswered takes a thread; the rest must go on being taken in. */
	fuse_loop_cfg_set_max_threads(config, 1000);
	(void)fuse_session_loop_mt(session, config);
	fuse_loop_cfg_destroy(config);
	return NULL;
}

/* For ThreadSanitizer, which calls it: those that hang end with the process, that is their use. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "report_thread_leaks=0";
}

int main(int argc, char *argv[])
{
	const char *options[] = { "hang-fs", "-o", "fsname=hang-fs,allow_other,default_permissions",
				  NULL };
	struct fuse_args args = FUSE_ARGS_INIT(3, (char **)(void *)options);
	struct fuse_session *session;
	pthread_t thread;
	char command;

	if (argc != 2) {
		fprintf(stderr, "usage: hang-fs MOUNTPOINT\n");
		return 2;
	}
	session = fuse_session_new(&args, &ops, sizeof ops, NULL);
	if (!session || fuse_session_mount(session, argv[1]) != 0 ||
	    pthread_create(&thread, NULL, serve, session) != 0)
		return 1;
	do {
		if (write(STDOUT_FILENO, "", 1) != 1 || read(STDIN_FILENO, &command, 1) != 1)
			break;
		if (command == 'q')
			break;
		set_hung(command == 'h');
		alarm(command == 'h' ? HANG_SECONDS : 0); /* its signal ends this process */
	} while (true);
	/* Forced: what waits is not answered. The device closes with the process. */
	(void)umount2(argv[1], MNT_FORCE | MNT_DETACH);
	_exit(0);
}
