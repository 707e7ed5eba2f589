/* The gateway alone, without a kernel that checks before it asks: every operation of the gate's list that changes something
 * is refused on a read-only mount, and no name that is not a single component gets anywhere.
 *
 * An operation that the list gains, and that is not READ, needs a request of its own here: raw_<ID>. Without it this file
 * does not compile. */
#include "fsgate/gate.h"
#include "lib/preflight.h"
#include "lib/raw-client.h"
#include "lib/view-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/fuse.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct {
	RawClient *client;
	GByteArray *body; /* of the next request */
	uint64_t dir, file,
		other;	  /* nodes: a directory, a file in it, a writable directory elsewhere */
	uint64_t handle;  /* file, opened for reading */
	const char *name; /* for what takes one */
} Raw;

#define ADD(raw, value) g_byte_array_append((raw)->body, (const guint8 *)&(value), sizeof(value))

static int call(Raw *raw, uint32_t opcode, uint64_t node)
{
	return raw_client_call(raw->client, opcode, node, raw->body, NULL, 0);
}

/* --- one request an operation; those with a name take raw->name --- */

static int with_name(Raw *raw, uint32_t opcode)
{
	raw_add_text(raw->body, raw->name);
	return call(raw, opcode, raw->dir);
}

static void release(Raw *raw, uint64_t node, uint64_t handle)
{
	const struct fuse_release_in in = { .fh = handle };

	ADD(raw, in);
	assert_int_equal(call(raw, FUSE_RELEASE, node), 0);
}

static int raw_OPEN(Raw *raw)
{
	const struct fuse_open_in in = { .flags = O_RDONLY | O_TRUNC };
	struct fuse_open_out out;
	int r;

	ADD(raw, in);
	r = raw_client_call(raw->client, FUSE_OPEN, raw->file, raw->body, &out, sizeof out);
	if (r == 0)
		release(raw, raw->file, out.fh);
	return r;
}

static int raw_ACCESS(Raw *raw)
{
	const struct fuse_access_in in = { .mask = W_OK };

	ADD(raw, in);
	return call(raw, FUSE_ACCESS, raw->file);
}

static int raw_CREATE(Raw *raw)
{
	const struct fuse_create_in in = { .flags = O_CREAT | O_WRONLY, .mode = S_IFREG | 0644 };

	struct {
		struct fuse_entry_out entry;
		struct fuse_open_out open;
	} out;
	int r;

	ADD(raw, in);
	raw_add_text(raw->body, raw->name);
	r = raw_client_call(raw->client, FUSE_CREATE, raw->dir, raw->body, &out, sizeof out);
	if (r == 0)
		release(raw, out.entry.nodeid, out.open.fh);
	return r;
}

static int raw_WRITE(Raw *raw)
{
	const struct fuse_write_in in = { .fh = raw->handle, .size = 4 };

	ADD(raw, in);
	g_byte_array_append(raw->body, (const guint8 *)"evil", 4);
	return call(raw, FUSE_WRITE, raw->file);
}

static int raw_SETATTR(Raw *raw)
{
	static const uint32_t valid[] = {
		FATTR_MODE, FATTR_SIZE,	 FATTR_SIZE | FATTR_FH,	       FATTR_UID,
		FATTR_GID,  FATTR_MTIME, FATTR_ATIME | FATTR_ATIME_NOW
	};
	int r = -EROFS;

	for (size_t i = 0; i < G_N_ELEMENTS(valid) && r == -EROFS; i++) {
		const struct fuse_setattr_in in = { .valid = valid[i],
						    .fh = raw->handle,
						    .mode = S_IFREG | 0600,
						    .uid = geteuid(),
						    .gid = getegid() };

		ADD(raw, in);
		r = call(raw, FUSE_SETATTR, raw->file);
	}
	return r;
}

static int raw_SYMLINK(Raw *raw)
{
	raw_add_text(raw->body, raw->name);
	raw_add_text(raw->body, "target");
	return call(raw, FUSE_SYMLINK, raw->dir);
}

static int raw_MKDIR(Raw *raw)
{
	const struct fuse_mkdir_in in = { .mode = 0755 };

	ADD(raw, in);
	return with_name(raw, FUSE_MKDIR);
}

static int raw_MKNOD(Raw *raw)
{
	const struct fuse_mknod_in in = { .mode = S_IFREG | 0644 };

	ADD(raw, in);
	return with_name(raw, FUSE_MKNOD);
}

static int raw_UNLINK(Raw *raw)
{
	return with_name(raw, FUSE_UNLINK);
}

static int raw_RMDIR(Raw *raw)
{
	return with_name(raw, FUSE_RMDIR);
}

static int rename_to(Raw *raw, uint64_t from, const char *name, uint64_t to, const char *new_name)
{
	const struct fuse_rename2_in in = { .newdir = to };

	ADD(raw, in);
	raw_add_text(raw->body, name);
	raw_add_text(raw->body, new_name);
	return call(raw, FUSE_RENAME2, from);
}

/* Within, out and in: whichever is not refused is told. */
static int raw_RENAME(Raw *raw)
{
	int r = rename_to(raw, raw->dir, "f", raw->dir, raw->name);

	if (r == -EROFS)
		r = rename_to(raw, raw->dir, "f", raw->other, raw->name);
	return r == -EROFS ? rename_to(raw, raw->other, "o", raw->dir, raw->name) : r;
}

static int raw_LINK(Raw *raw)
{
	const struct fuse_link_in in = { .oldnodeid = raw->file };

	ADD(raw, in);
	return with_name(raw, FUSE_LINK);
}

static int raw_SETXATTR(Raw *raw)
{
	const struct fuse_setxattr_in in = { .size = 1 };

	/* the short form: the long one has to be asked for */
	g_byte_array_append(raw->body, (const guint8 *)&in, FUSE_COMPAT_SETXATTR_IN_SIZE);
	raw_add_text(raw->body, "user.y");
	g_byte_array_append(raw->body, (const guint8 *)"1", 1);
	return call(raw, FUSE_SETXATTR, raw->file);
}

static int raw_REMOVEXATTR(Raw *raw)
{
	raw_add_text(raw->body, "user.x");
	return call(raw, FUSE_REMOVEXATTR, raw->file);
}

static int raw_SETFLAGS(Raw *raw)
{
	const uint32_t flags = FS_NODUMP_FL;
	const struct fuse_ioctl_in in = {
		.fh = raw->handle,
		.cmd = FS_IOC_SETFLAGS,
		.in_size = sizeof flags,
	};

	ADD(raw, in);
	ADD(raw, flags);
	return call(raw, FUSE_IOCTL, raw->file);
}

static int raw_FALLOCATE(Raw *raw)
{
	const struct fuse_fallocate_in in = { .fh = raw->handle, .length = 10000 };

	ADD(raw, in);
	return call(raw, FUSE_FALLOCATE, raw->file);
}

static int raw_COPY_FILE_RANGE(Raw *raw)
{
	const struct fuse_copy_file_range_in in = {
		.fh_in = raw->handle,
		.off_in = 0,
		.nodeid_out = raw->file,
		.fh_out = raw->handle,
		.off_out = 6,
		.len = 3,
	};

	ADD(raw, in);
	return call(raw, FUSE_COPY_FILE_RANGE, raw->file);
}

/* --- the list --- */

#define ROW_READ(id)
#define ROW_FLAGS(id)	     { FSG_OP_##id, raw_##id },
#define ROW_WRITE(id)	     { FSG_OP_##id, raw_##id },
#define ROW(id, text, needs) ROW_##needs(id)

static const struct {
	FsgOp op;
	int (*run)(Raw *raw);
} changing[] = { FSG_OPS(ROW) };

static uint64_t open_for_reading(Raw *raw)
{
	const struct fuse_open_in in = { .flags = O_RDONLY };
	struct fuse_open_out out = { 0 };

	ADD(raw, in);
	assert_int_equal(
		raw_client_call(raw->client, FUSE_OPEN, raw->file, raw->body, &out, sizeof out), 0);
	return out.fh;
}

/* On the host: rw/ with file o, and ro/ with file f (with user.x) and directory d. */
typedef struct {
	ViewFixture *files; /* only its directory: nothing is mounted */
	char *ro, *rw;
	Raw raw;
} Fixture;

static void fill(const ViewFixture *files, const char *dir)
{
	g_autofree char *file = g_strconcat(dir, "/f", NULL);
	g_autofree char *sub = g_strconcat(dir, "/d", NULL);
	g_autofree char *path = view_fixture_path(files, file);

	view_fixture_mkdir(files, dir);
	view_fixture_write(files, file, "content of f");
	view_fixture_mkdir(files, sub);
	assert_int_equal(setxattr(path, "user.x", "1", 1, 0), 0);
}

static int set_up(void **state)
{
	Fixture *f = g_new0(Fixture, 1);
	g_autofree char *policy = NULL;

	f->files = view_fixture_new();
	f->ro = view_fixture_path(f->files, "ro");
	f->rw = view_fixture_path(f->files, "rw");
	fill(f->files, "ro");
	fill(f->files, "rw");
	view_fixture_write(f->files, "rw/o", "other");
	policy = g_strdup_printf(
		"{\"version\": 1, \"filesystem\": {\"workspace_root\": \"%s\", \"working_dir\": "
		"\"/workspace\", \"runtime\": \"none\", \"mounts\": [{\"host_path\": \"%s\", "
		"\"view_path\": \"/ro\", \"access\": \"ro\"}]}}",
		f->rw, f->ro);
	f->raw.client = raw_client_new(policy);
	f->raw.body = g_byte_array_new();
	f->raw.name = "new";
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *f = *state;

	raw_client_free(f->raw.client);
	g_byte_array_unref(f->raw.body);
	view_fixture_free(f->files);
	g_free(f->ro);
	g_free(f->rw);
	g_free(f);
	return 0;
}

static void aim(Raw *raw, const char *dir)
{
	g_autofree char *file = g_strconcat(dir, "/f", NULL);

	raw->dir = raw_client_walk(raw->client, dir);
	raw->file = raw_client_walk(raw->client, file);
	raw->other = raw_client_walk(raw->client, "workspace");
	assert_true(raw->dir && raw->file && raw->other);
	raw->handle = open_for_reading(raw);
}

static void every_changing_operation_is_refused_on_a_read_only_mount(void **state)
{
	Fixture *f = *state;
	g_autofree char *before = tree_snapshot(f->ro);
	g_autofree char *before_rw = tree_snapshot(f->rw);
	g_autofree char *after = NULL;
	g_autofree char *after_rw = NULL;

	aim(&f->raw, "ro");
	for (size_t i = 0; i < G_N_ELEMENTS(changing); i++) {
		int r = changing[i].run(&f->raw);

		if (r != -EROFS)
			print_message("%s: %d\n", fsg_op_name(changing[i].op), r);
		assert_int_equal(r, -EROFS);
	}
	/* What is there already is refused no less. */
	f->raw.name = "d";
	assert_int_equal(raw_RMDIR(&f->raw), -EROFS);
	f->raw.name = "f";
	assert_int_equal(raw_UNLINK(&f->raw), -EROFS);
	release(&f->raw, f->raw.file, f->raw.handle);
	after = tree_snapshot(f->ro);
	after_rw = tree_snapshot(f->rw);
	assert_string_equal(before, after);
	assert_string_equal(before_rw, after_rw);
}

/* The twin: a gateway that refuses everything would do well above. Not with EROFS, whatever else the host says to a name
 * that is there already or a handle that only reads. */
static void no_operation_is_refused_so_on_a_writable_mount(void **state)
{
	Fixture *f = *state;
	int worked = 0;

	aim(&f->raw, "workspace");
	for (size_t i = 0; i < G_N_ELEMENTS(changing); i++) {
		int r = changing[i].run(&f->raw);

		assert_int_not_equal(r, -EROFS);
		worked += r == 0;
	}
	release(&f->raw, f->raw.file, f->raw.handle);
	assert_true(worked > 6);
}

/* --- names --- */

static int raw_LOOKUP(Raw *raw)
{
	return with_name(raw, FUSE_LOOKUP);
}

static int rename_from(Raw *raw)
{
	return rename_to(raw, raw->dir, raw->name, raw->dir, "to");
}

static int rename_onto(Raw *raw)
{
	return rename_to(raw, raw->dir, "f", raw->dir, raw->name);
}

static void no_name_is_more_than_one_component(void **state)
{
	static int (*const takers[])(Raw * raw) = {
		raw_LOOKUP, raw_CREATE, raw_SYMLINK, raw_MKDIR,	  raw_MKNOD,
		raw_UNLINK, raw_RMDIR,	raw_LINK,    rename_from, rename_onto,
	};
	static const char *const names[] = {
		"", ".", "..", "a/b", "/", "/etc", "../new", "d/../x"
	};
	Fixture *f = *state;
	g_autofree char *before = NULL;
	g_autofree char *after = NULL;
	g_autofree char *long_name = g_strnfill(256, 'n');

	aim(&f->raw, "workspace");
	before = tree_snapshot(f->files->dir);
	for (size_t i = 0; i < G_N_ELEMENTS(takers); i++) {
		for (size_t k = 0; k < G_N_ELEMENTS(names); k++) {
			f->raw.name = names[k];
			if (takers[i](&f->raw) != -EINVAL)
				print_message("taker %zu of name \"%s\"\n", i, names[k]);
			f->raw.name = names[k];
			assert_int_equal(takers[i](&f->raw), -EINVAL);
		}
		f->raw.name = long_name;
		assert_int_equal(takers[i](&f->raw), -ENAMETOOLONG);
	}
	after = tree_snapshot(f->files->dir);
	assert_string_equal(before, after);
	f->raw.name = "one";
	assert_int_equal(raw_MKDIR(&f->raw), 0);
	release(&f->raw, f->raw.file, f->raw.handle);
}

/* A number of a request that there is none of, and what the kernel never asks of a link or of a directory. */
static void what_makes_no_sense_is_an_error_and_no_end(void **state)
{
	Fixture *f = *state;

	aim(&f->raw, "workspace");
	assert_true(call(&f->raw, 9999, f->raw.dir) < 0);
	assert_true(call(&f->raw, FUSE_READLINK, f->raw.file) < 0);
	assert_int_equal(raw_LOOKUP(&(Raw){ .client = f->raw.client,
					    .body = f->raw.body,
					    .dir = f->raw.file,
					    .name = "x" }),
			 -ENOTDIR);
	f->raw.name = "made";
	assert_int_equal(raw_MKDIR(&f->raw), 0);
	release(&f->raw, f->raw.file, f->raw.handle);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(every_changing_operation_is_refused_on_a_read_only_mount),
		TEST(no_operation_is_refused_so_on_a_writable_mount),
		TEST(no_name_is_more_than_one_component),
		TEST(what_makes_no_sense_is_an_error_and_no_end),
	};
	int r = preflight_require((const char *const[]){ "root", "fuse", NULL });

	return r ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
