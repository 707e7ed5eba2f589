/* /etc in the view: the host's, without its secrets, and with the files of the view's own that tell a
 * program who it is and where names are resolved.
 *
 * Always served by the gateway, never bound: a bind could leave nothing out. What links of /etc lead to
 * in /run is copied, for /run itself, with its sockets, is never shown. Only what every user of the host
 * may read is copied: the gateway that makes the copy may be root. */
#include "common/view-plan-internal.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/io-util.h"
#include "common/limits.h"
#include "common/path-util.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* What does not appear, whatever its mode: matched component by component from /etc. */
static const char *const secrets[] = {
	"shadow",
	"shadow-",
	"gshadow",
	"gshadow-",
	"opasswd",
	"security/opasswd",
	"sudoers*",
	"sudo.conf",
	"ssh/*key",
	"ssl/private",
	"pki/tls/private",
	"krb5.keytab",
	"credstore",
	"credstore.encrypted",
	"letsencrypt",
	"wireguard",
	"openvpn",
	"ipsec.d/private",
	"ipsec.secrets",
	"ppp/*-secrets",
	"NetworkManager/system-connections",
	"wpa_supplicant",
	NULL,
};

enum { UID_NOBODY = 65534 };

static void add_file(ViewPlan *plan, const char *path, char *take_content, size_t size)
{
	ViewEntry *entry;

	if (view_plan_covers(plan, path)) {
		g_free(take_content);
		return;
	}
	entry = view_plan_add(plan, VIEW_ENTRY_GENERATED, VIEW_ORIGIN_RUNTIME, path, NULL);
	entry->content = take_content;
	entry->content_size = size;
}

/* Reads a regular file, links followed; it is looked at before it is opened, for opening a FIFO wakes
 * its writer. 0 and no content when there is none that we may read; -errno when reading it failed. */
static int read_file(const char *path, bool only_public, char **ret_content, size_t *ret_size)
{
	FD_AUTO found = open(path, O_PATH | O_CLOEXEC);
	FD_AUTO fd = -1;
	char reopen[FD_PROC_PATH_SIZE];
	struct stat st;

	*ret_content = NULL;
	if (found < 0 || fstat(found, &st) != 0 || !S_ISREG(st.st_mode))
		return 0;
	if (only_public && !(st.st_mode & S_IROTH))
		return 0;
	fd_proc_path(found, reopen);
	fd = open(reopen, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	return io_read_to_end(fd, LIMIT_SMALL_FILE_BYTES, ret_content, ret_size);
}

/* A field of passwd ends at a colon; such a home is better not given than given wrong. */
static const char *passwd_field(const char *home)
{
	return strpbrk(home, ":\n") ? "/" : home;
}

static void add_accounts(ViewPlan *plan)
{
	const char *shell = access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
	const char *home = passwd_field(plan->home);
	unsigned int id = plan->policy->process_uid;
	GString *passwd = g_string_new(NULL), *group = g_string_new("root:x:0:\n");
	size_t size;

	g_string_append_printf(passwd, "root:x:0:0:root:%s:%s\n", id == 0 ? home : "/root", shell);
	if (id != 0) {
		g_string_append_printf(passwd, "agent:x:%u:%u:agent:%s:%s\n", id, id, home, shell);
		g_string_append_printf(group, "agent:x:%u:\n", id);
	}
	if (id != UID_NOBODY) {
		g_string_append_printf(passwd, "nobody:x:%d:%d:nobody:/:/usr/sbin/nologin\n",
				       UID_NOBODY, UID_NOBODY);
		g_string_append_printf(group, "nobody:x:%d:\n", UID_NOBODY);
	}
	size = passwd->len;
	add_file(plan, "/etc/passwd", g_string_free(passwd, FALSE), size);
	size = group->len;
	add_file(plan, "/etc/group", g_string_free(group, FALSE), size);
}

static int add_resolv_conf(ViewPlan *plan, char **reterr_message)
{
	char *content;
	size_t size;
	int r = read_file("/etc/resolv.conf", false, &content, &size);

	if (r < 0)
		return view_plan_refuse(r, reterr_message, "runtime file", "/etc/resolv.conf",
					errno_text(-r));
	if (content)
		add_file(plan, "/etc/resolv.conf", content, size);
	return 0;
}

/* Follows links from /etc/name, by their texts, until one of them names something in /run. The caller
 * frees; NULL when none does. Links in the middle of a text are left to the kernel: a path in /run is
 * only looked for as it is written, for so it is looked up in the view. */
static char *find_in_run(const char *name)
{
	g_autofree char *path = path_join("/etc", name);

	for (int i = 0; i < LIMIT_LINKS; i++) {
		char text[LIMIT_PATH_BYTES];
		g_autofree char *dir = g_path_get_dirname(path);
		ssize_t length = readlink(path, text, sizeof text - 1);

		if (length <= 0)
			return NULL;
		text[length] = '\0';
		g_free(path);
		path = path_clean_from(dir, text);
		if (path_is_below(path, "/run"))
			return g_steal_pointer(&path);
	}
	return NULL;
}

/* Whether every user of the host may go to the directory that path is really in. */
static bool is_public_place(const char *path)
{
	char real[PATH_MAX];
	struct stat st;

	if (!realpath(path, real))
		return false;
	for (char *slash = strrchr(real, '/'); slash && slash != real; slash = strrchr(real, '/')) {
		*slash = '\0';
		if (stat(real, &st) != 0 || !(st.st_mode & S_IXOTH))
			return false;
	}
	return true;
}

static bool is_in_plan(const ViewPlan *plan, const char *path)
{
	for (unsigned int i = 0; i < plan->entries->len; i++) {
		const ViewEntry *entry = plan->entries->pdata[i];

		if (strcmp(entry->view_path, path) == 0 ||
		    (entry->host_path && path_is_below(path, entry->view_path)))
			return true;
	}
	return false;
}

/* A file that cannot be copied is left out: its link dangles in the view. */
static void add_links_to_run(ViewPlan *plan)
{
	DIR *dir = opendir("/etc");
	struct dirent *entry;

	if (!dir)
		return; /* whoever may not list it is shown nothing of it */
	while ((entry = readdir(dir))) {
		g_autofree char *path = NULL;
		char *content;
		size_t size;

		/* resolv.conf is the view's own and leads nowhere. */
		if ((entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN) ||
		    strcmp(entry->d_name, "resolv.conf") == 0 ||
		    !(path = find_in_run(entry->d_name)) || is_in_plan(plan, path) ||
		    !is_public_place(path))
			continue;
		if (read_file(path, true, &content, &size) == 0 && content)
			add_file(plan, path, content, size);
	}
	closedir(dir);
}

int view_plan_add_etc(ViewPlan *plan, char **reterr_message)
{
	ViewEntry *etc;
	bool opened;
	int r;

	if (!view_plan_covers(plan, "/etc")) {
		etc = view_plan_add(plan, VIEW_ENTRY_MOUNT, VIEW_ORIGIN_RUNTIME, "/etc", "/etc");
		etc->cross_submounts = true;
		etc->hide = secrets;
		r = view_plan_look(etc, "runtime directory", false, &opened, reterr_message);
		if (r < 0 && !opened)
			return view_plan_refuse(r, reterr_message, "runtime directory", "/etc",
						errno_text(-r));
		if (r < 0)
			return r;
		add_accounts(plan);
		if ((r = add_resolv_conf(plan, reterr_message)) < 0)
			return r;
		add_links_to_run(plan);
	}
	return 0;
}
