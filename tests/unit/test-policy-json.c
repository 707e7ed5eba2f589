/* policy-json: what is refused, with which words, and beside it the nearest text that is accepted.
 *
 * In the tables ' stands for a double quote and ` for a single one, for the sake of the reader. */
#include "common/limits.h"
#include "common/policy-json.h"

#include <errno.h>
#include <glib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define TOP(members) "{'version':1,'filesystem':{'working_dir':'/workspace'}," members "}"
#define FS(members)  "{'version':1,'filesystem':{'working_dir':'/workspace'," members "}}"
#define ROWS(rows)   FS("'mounts':[" rows "]")
#define ROW(members) ROWS("{'host_path':'/a','view_path':'/a'," members "}")

static char *requote(const char *text)
{
	char *quoted = g_strdup(text);

	for (char *p = quoted; *p; p++)
		*p = *p == '\'' ? '"' : *p == '`' ? '\'' : *p;
	return quoted;
}

static StellaPolicy *parse_or_fail(const char *text)
{
	StellaPolicy *policy = NULL;
	g_autofree char *message = NULL;
	int r = policy_json_parse(text, strlen(text), &policy, &message);

	if (r != 0)
		fail_msg("%s\n refused: %s", text, message);
	assert_null(message);
	return policy;
}

typedef struct {
	const char *bad, *message, *good;
} Refusal;

static void each_is_refused_and_its_twin_is_not(const Refusal *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		g_autofree char *bad = requote(rows[i].bad);
		g_autofree char *good = requote(rows[i].good);
		g_autofree char *message = NULL;
		StellaPolicy *policy = NULL;
		int r = policy_json_parse(bad, strlen(bad), &policy, &message);

		if (r == 0)
			fail_msg("accepted: %s", bad);
		assert_int_equal(r, -EINVAL);
		assert_null(policy);
		assert_string_equal(message, rows[i].message);
		stella_policy_unref(parse_or_fail(good));
	}
}

static void every_key_is_checked_and_named(void **state)
{
	static const Refusal rows[] = {
		{ "{}", "version: required", TOP("'env':{}") },
		{ "{'version':2,'new':1}",
		  "version: 2 is newer than 1, the newest that this build reads", TOP("'env':{}") },
		{ "{'version':0}", "version: expected 1, got 0", TOP("'env':{}") },
		{ "{'version':1.0}", "version: expected 1, got 1.0", TOP("'env':{}") },
		{ "{'version':'1'}", "version: expected 1, got \"1\"", TOP("'env':{}") },
		{ "{'version':1}", "filesystem.working_dir: required", TOP("'env':{}") },
		{ "{'version':1,'filesystem':[]}", "filesystem: expected an object, got an array",
		  TOP("'env':{}") },
		{ "{'version':1,'filesystem':{'working_dir':'x'}}",
		  "filesystem.working_dir: expected an absolute path, got \"x\"",
		  "{'version':1,'filesystem':{'working_dir':'/x'}}" },
		{ TOP("'environment':{}"), "environment: unknown key", TOP("'env':{}") },
		{ TOP("'a\\n\\u001b':{}"), "a\\x0a\\x1b: unknown key",
		  TOP("'env':{'a\\n\\u001b':''}") },
		{ FS("'work_dir':'/x'"), "filesystem.work_dir: unknown key",
		  FS("'workspace_root':'/x'") },
		{ FS("'workspace_root':null"),
		  "filesystem.workspace_root: expected a string, got null",
		  FS("'workspace_root':''") },
		{ FS("'workspace_root':'~/w'"),
		  "filesystem.workspace_root: expected an absolute path, got \"~/w\"",
		  FS("'workspace_root':'/~/w'") },
		{ FS("'stella_home':{}"),
		  "filesystem.stella_home: expected a string, got an object",
		  FS("'stella_home':'/s'") },
		{ FS("'stella_home':'s'"),
		  "filesystem.stella_home: expected an absolute path, got \"s\"",
		  FS("'stella_home':'/s'") },
		{ FS("'temp_dir_host':'t'"),
		  "filesystem.temp_dir_host: expected an absolute path, got \"t\"",
		  FS("'temp_dir_host':'/t'") },
		{ FS("'user_tools_dir':'/s/users/u/.mise-tools'"),
		  "filesystem.user_tools_dir: needs filesystem.stella_home",
		  FS("'stella_home':'/s','user_tools_dir':'/s/users/u/.mise-tools'") },
		{ FS("'stella_home':'/s','user_tools_dir':'/s/users/u v/.mise-tools'"),
		  "filesystem.user_tools_dir: expected STELLA_HOME/users/ID/.mise-tools, got "
		  "\"/s/users/u v/.mise-tools\"",
		  FS("'stella_home':'/s','user_tools_dir':'/s/users/u-V_1/.mise-tools'") },
		{ FS("'stella_home':'/s','user_tools_dir':'/s/users/u/.mise-tools/x'"),
		  "filesystem.user_tools_dir: expected STELLA_HOME/users/ID/.mise-tools, got "
		  "\"/s/users/u/.mise-tools/x\"",
		  FS("'stella_home':'/s','user_tools_dir':'/s/users/u/.mise-tools/'") },
		{ FS("'stella_home':'/s','user_tools_dir':'/s-evil/users/u/.mise-tools'"),
		  "filesystem.user_tools_dir: expected STELLA_HOME/users/ID/.mise-tools, got "
		  "\"/s-evil/users/u/.mise-tools\"",
		  FS("'stella_home':'/s','user_tools_dir':'/s/x/../users/u/.mise-tools'") },
		{ FS("'runtime':'default'"),
		  "filesystem.runtime: expected \"none\" or \"host\", got \"default\"",
		  FS("'runtime':'none'") },
		{ FS("'symlinks':'follow'"),
		  "filesystem.symlinks: expected \"contained\" or \"deny\", got \"follow\"",
		  FS("'symlinks':'deny'") },
		{ FS("'cache':true"),
		  "filesystem.cache: expected \"auto\", \"strict\" or \"exclusive\", got true",
		  FS("'cache':'exclusive'") },
		{ FS("'ownership':'root'"),
		  "filesystem.ownership: expected \"owner\" or \"host\", got \"root\"",
		  FS("'ownership':'host'") },
		{ FS("'hide':'**/.env'"), "filesystem.hide: expected an array, got \"**/.env\"",
		  FS("'hide':['**/.env']") },
		{ FS("'hide':['a',5]"), "filesystem.hide[1]: expected a string, got 5",
		  FS("'hide':['a','5']") },
		{ FS("'hide':['']"), "filesystem.hide[0]: is empty, expected a pattern",
		  FS("'hide':['*']") },
		{ FS("'protect':['a/../b']"),
		  "filesystem.protect[0]: expected a pattern without . and .., got \"a/../b\"",
		  FS("'protect':['a/..b']") },
		{ TOP("'network':{'mode':'none'}"),
		  "network.mode: expected \"allow_all\" or \"disabled\", got \"none\"",
		  TOP("'network':{'mode':'disabled'}") },
		{ TOP("'network':{'modes':1}"), "network.modes: unknown key", TOP("'network':{}") },
		{ TOP("'network':{'timeout_ms':-1}"),
		  "network.timeout_ms: expected an integer from 0 to 2147483647000, got -1",
		  TOP("'network':{'timeout_ms':1}") },
		{ TOP("'env':{'A':5}"), "env.A: expected a string, got 5", TOP("'env':{'A':'5'}") },
		{ TOP("'env':{'':'x'}"), "env: a name is empty", TOP("'env':{'x':''}") },
		{ TOP("'env':{'A=B':'x'}"), "env: the name \"A=B\" has a \"=\" in it",
		  TOP("'env':{'AB':'=x'}") },
		{ TOP("'inherit_env':1"), "inherit_env: expected true or false, got 1",
		  TOP("'inherit_env':true") },
		{ TOP("'env_override':'true'"),
		  "env_override: expected true or false, got \"true\"",
		  TOP("'env_override':true") },
		{ TOP("'timeout_ms':1.5"),
		  "timeout_ms: expected an integer from 0 to 2147483647000, got 1.5",
		  TOP("'timeout_ms':1") },
		{ TOP("'timeout_ms':1e3"),
		  "timeout_ms: expected an integer from 0 to 2147483647000, got 1e3",
		  TOP("'timeout_ms':1000") },
		{ TOP("'timeout_ms':2147483647001"),
		  "timeout_ms: expected an integer from 0 to 2147483647000, got 2147483647001",
		  TOP("'timeout_ms':2147483647000") },
		{ TOP("'process':{'user':'nobody'}"),
		  "process.user: expected \"agent\", \"root\" or an integer from 0 to 4294967294, "
		  "got "
		  "\"nobody\"",
		  TOP("'process':{'user':'root'}") },
		{ TOP("'process':{'user':4294967295}"),
		  "process.user: expected \"agent\", \"root\" or an integer from 0 to 4294967294, "
		  "got "
		  "4294967295",
		  TOP("'process':{'user':4294967294}") },
		{ TOP("'process':{'uid':1}"), "process.uid: unknown key", TOP("'process':{}") },
		{ TOP("'limits':{'output_bytes':0}"),
		  "limits.output_bytes: expected an integer from 1 to 1073741824, got 0",
		  TOP("'limits':{'output_bytes':1}") },
		{ TOP("'limits':{'output_bytes':1073741825}"),
		  "limits.output_bytes: expected an integer from 1 to 1073741824, got 1073741825",
		  TOP("'limits':{'output_bytes':1073741824}") },
		{ TOP("'limits':{'output_bytes':10,'tail_bytes':11}"),
		  "limits.tail_bytes: expected at most limits.output_bytes (10), got 11",
		  TOP("'limits':{'output_bytes':10,'tail_bytes':10}") },
		{ TOP("'limits':{'open_files':'many'}"),
		  "limits.open_files: expected an integer from 0 to 1073741824, got \"many\"",
		  TOP("'limits':{'open_files':0}") },
		{ TOP("'limits':{'processes':-1}"),
		  "limits.processes: expected an integer from 0 to 4194304, got -1",
		  TOP("'limits':{'processes':1}") },
		{ TOP("'limits':{'spill':0}"), "limits.spill: expected true or false, got 0",
		  TOP("'limits':{'spill':false}") },
		{ TOP("'limits':{'cpu':1}"), "limits.cpu: unknown key",
		  TOP("'limits':{'cpu_seconds':1}") },
		{ TOP("'limits':{'required':[]}"),
		  "limits.required: expected true or false, got an array",
		  TOP("'limits':{'required':true}") },
	};

	(void)state;
	each_is_refused_and_its_twin_is_not(rows, G_N_ELEMENTS(rows));
}

static void every_mount_is_checked_and_numbered(void **state)
{
	static const Refusal rows[] = {
		{ ROWS("{'host_path':'/a','view_path':'/a','access':'ro'},"
		       "{'host_path':'/b','view_path':'/b','access':'ro'},"
		       "{'host_path':'/c','view_path':'/c','access':'readwrite'}"),
		  "filesystem.mounts[2].access: expected \"ro\" or \"rw\", got \"readwrite\"",
		  ROWS("{'host_path':'/a','view_path':'/a','access':'ro'},"
		       "{'host_path':'/b','view_path':'/b','access':'rw'},"
		       "{'host_path':'/c','view_path':'/c','access':'cow'}") },
		{ FS("'mounts':{}"), "filesystem.mounts: expected an array, got an object",
		  FS("'mounts':[]") },
		{ ROWS("'/a'"), "filesystem.mounts[0]: expected an object, got \"/a\"",
		  ROW("'access':'ro'") },
		{ ROWS("{'view_path':'/a','access':'ro'}"),
		  "filesystem.mounts[0].host_path: required", ROW("'access':'ro'") },
		{ ROWS("{'host_path':'/a','access':'ro'}"),
		  "filesystem.mounts[0].view_path: required", ROW("'access':'ro'") },
		{ ROWS("{'host_path':'/a','view_path':'/a'}"),
		  "filesystem.mounts[0].access: required", ROW("'access':'ro'") },
		{ ROW("'access':'ro','mode':1"), "filesystem.mounts[0].mode: unknown key",
		  ROW("'access':'ro','optional':true") },
		{ ROW("'access':'ro','optional':'yes'"),
		  "filesystem.mounts[0].optional: expected true or false, got \"yes\"",
		  ROW("'access':'ro','optional':false") },
		{ ROW("'access':'rw','quota_bytes':-5"),
		  "filesystem.mounts[0].quota_bytes: expected an integer from 0 to "
		  "9223372036854775807, got -5",
		  ROW("'access':'rw','quota_bytes':5") },
		{ ROW("'access':'rw','quota_files':0.5"),
		  "filesystem.mounts[0].quota_files: expected an integer from 0 to "
		  "9223372036854775807, got 0.5",
		  ROW("'access':'rw','quota_files':5") },
		{ ROWS("{'host_path':'','view_path':'/a','access':'ro'}"),
		  "filesystem.mounts[0].host_path: is empty, expected an absolute path",
		  ROWS("{'host_path':'/','view_path':'/a','access':'ro'}") },
		{ ROWS("{'host_path':'a','view_path':'/a','access':'ro'}"),
		  "filesystem.mounts[0].host_path: expected an absolute path, got \"a\"",
		  ROWS("{'host_path':'/a','view_path':'/a','access':'ro'}") },
		{ ROWS("{'host_path':'/a','view_path':'.','access':'ro'}"),
		  "filesystem.mounts[0].view_path: expected an absolute path, got \".\"",
		  ROWS("{'host_path':'/a','view_path':'/./a','access':'ro'}") },
		{ ROWS("{'host_path':'/a','view_path':'/x/..','access':'ro'}"),
		  "filesystem.mounts[0].view_path: \"/\" is the view itself, name a place below it",
		  ROWS("{'host_path':'/a','view_path':'/x/../y','access':'ro'}") },
		{ ROWS("{'host_path':'/a','view_path':'/proc','access':'ro'}"),
		  "filesystem.mounts[0].view_path: \"/proc\" lies in /proc, which the view keeps "
		  "for "
		  "itself",
		  ROWS("{'host_path':'/a','view_path':'/process','access':'ro'}") },
		{ ROWS("{'host_path':'/a','view_path':'/x/../dev/shm','access':'ro'}"),
		  "filesystem.mounts[0].view_path: \"/dev/shm\" lies in /dev, which the view keeps "
		  "for "
		  "itself",
		  ROWS("{'host_path':'/a','view_path':'/x/dev/shm','access':'ro'}") },
		{ ROWS("{'host_path':'/a','view_path':'/sys/fs','access':'ro'}"),
		  "filesystem.mounts[0].view_path: \"/sys/fs\" lies in /sys, which the view keeps "
		  "for "
		  "itself",
		  ROWS("{'host_path':'/a','view_path':'/system','access':'ro'}") },
		{ ROWS("{'host_path':'/a','view_path':'/v','access':'ro'},"
		       "{'host_path':'/b','view_path':'/w/../v//','access':'rw'}"),
		  "filesystem.mounts[1].view_path: \"/v\" is the view path of filesystem.mounts[0] "
		  "already",
		  ROWS("{'host_path':'/a','view_path':'/v','access':'ro'},"
		       "{'host_path':'/a','view_path':'/v/w','access':'rw'}") },
		{ ROWS("{'host_path':'/a','view_path':'/opt/stella/agent-skills','access':'rw'}"),
		  "filesystem.mounts[0].access: /opt/stella/agent-skills is always read-only, "
		  "expected "
		  "\"ro\", got \"rw\"",
		  ROWS("{'host_path':'/a','view_path':'/opt/stella/agent-skills','access':'ro'}") },
		{ ROWS("{'host_path':'/a','view_path':'/opt/stella/db-skills/','access':'cow'}"),
		  "filesystem.mounts[0].access: /opt/stella/db-skills is always read-only, "
		  "expected "
		  "\"ro\", got \"cow\"",
		  ROWS("{'host_path':'/a','view_path':'/opt/stella/db-skills/x','access':'cow'}") },
	};

	(void)state;
	each_is_refused_and_its_twin_is_not(rows, G_N_ELEMENTS(rows));
}

/* The syntax itself is tested with json-strict. */
static void the_text_has_to_be_strict_json(void **state)
{
	static const Refusal rows[] = {
		{ "{/* */'version':1}",
		  "line 1, column 2: expected a key in double quotes, got '/'",
		  TOP("'env':{'/*':'*/'}") },
		{ ROWS("{'host_path':'/a','view_path':'/a','access':'ro'},"
		       "{'host_path':'/b','view_path':'/b','access':'ro'},"
		       "{'host_path':'/c','access':'ro','view_path':'/c','access':'rw'}"),
		  "filesystem.mounts[2].access: given twice",
		  ROWS("{'host_path':'/a','view_path':'/a','access':'ro'},"
		       "{'host_path':'/c','access':'ro','view_path':'/c'}") },
		{ "{'version':1,'version':1,'unknown':1}", "version: given twice",
		  TOP("'env':{}") },
	};

	(void)state;
	each_is_refused_and_its_twin_is_not(rows, G_N_ELEMENTS(rows));
}

static void sizes_and_depths_beyond_the_caps_are_refused(void **state)
{
	g_autofree char *empty = requote(TOP("'env':{}"));
	g_autofree char *nul = requote(TOP("'env':{'A':'x'}"));
	g_autofree char *big = g_malloc(LIMIT_POLICY_BYTES + 1);
	g_autoptr(GString) deep = g_string_new("{\"version\":");
	size_t length = strlen(empty), nul_size = strlen(nul);
	g_autofree char *too_big = NULL, *too_deep = NULL, *has_nul = NULL;
	StellaPolicy *policy = NULL;
	g_autofree char *message = NULL;

	(void)state;
	memset(big, ' ', LIMIT_POLICY_BYTES + 1);
	memcpy(big, empty, length);
	assert_int_equal(policy_json_parse(big, LIMIT_POLICY_BYTES + 1, &policy, &too_big), -E2BIG);
	assert_string_equal(too_big, "is larger than 1048576 bytes");
	assert_int_equal(policy_json_parse(big, LIMIT_POLICY_BYTES, &policy, &message), 0);
	stella_policy_unref(g_steal_pointer(&policy));

	for (int i = 0; i < LIMIT_POLICY_DEPTH - 1; i++)
		g_string_append_c(deep, '[');
	for (int i = 0; i < LIMIT_POLICY_DEPTH - 1; i++)
		g_string_append_c(deep, ']');
	g_string_append_c(deep, '}');
	assert_int_equal(policy_json_parse(deep->str, deep->len, &policy, &message), -EINVAL);
	assert_string_equal(message, "version: expected 1, got an array");
	g_string_insert_c(deep, strlen("{\"version\":"), '[');
	assert_int_equal(policy_json_parse(deep->str, deep->len, &policy, &too_deep), -EINVAL);
	assert_string_equal(too_deep, "line 1, column 27: nested too deep");

	strchr(nul, 'x')[0] = '\0';
	assert_int_equal(policy_json_parse(nul, nul_size, &policy, &has_nul), -EINVAL);
	assert_string_equal(has_nul, "line 1, column 68: a NUL");
	assert_null(policy);
}

static void a_long_value_is_cut_in_a_message(void **state)
{
	g_autofree char *value = g_strnfill(200, 'v');
	g_autofree char *text =
		g_strdup_printf("{\"version\":1,\"filesystem\":{\"working_dir\":\"/w\","
				"\"cache\":\"%s\"}}",
				value);
	g_autofree char *expected =
		g_strdup_printf("filesystem.cache: expected \"auto\", \"strict\" or \"exclusive\", "
				"got \"%.80s...\"",
				value);
	g_autofree char *message = NULL;
	StellaPolicy *policy = NULL;

	(void)state;
	assert_int_equal(policy_json_parse(text, strlen(text), &policy, &message), -EINVAL);
	assert_string_equal(message, expected);
}

static void absent_keys_take_their_defaults(void **state)
{
	g_autofree char *text =
		requote("{'version':1,'filesystem':{'working_dir':'/srv//ws/./x/..'}}");
	g_autoptr(StellaPolicy) policy = parse_or_fail(text);

	(void)state;
	assert_string_equal(policy->working_dir, "/srv/ws");
	assert_string_equal(policy->workspace_root, "/srv/ws");
	assert_string_equal(policy->stella_home, "");
	assert_string_equal(policy->user_tools_dir, "");
	assert_string_equal(policy->temp_dir_host, "");
	assert_int_equal(policy->mounts->len, 0);
	assert_int_equal(policy->runtime, POLICY_RUNTIME_DEFAULT);
	assert_int_equal(policy->symlinks, POLICY_SYMLINKS_CONTAINED);
	assert_int_equal(policy->cache, POLICY_CACHE_AUTO);
	assert_int_equal(policy->ownership, POLICY_OWNERSHIP_OWNER);
	assert_int_equal(policy->hide->len, 0);
	assert_int_equal(policy->protect->len, 0);
	assert_int_equal(policy->network_mode, STELLA_NETWORK_ALLOW_ALL);
	assert_int_equal(policy->network_timeout_ms, 0);
	assert_int_equal(policy->env->len, 0);
	assert_false(policy->inherit_env);
	assert_false(policy->env_override);
	assert_int_equal(policy->timeout_ms, 0);
	assert_int_equal(policy->process_uid, 1000);
	assert_int_equal(policy->limits.output_bytes, 10 * 1024 * 1024);
	assert_int_equal(policy->limits.tail_bytes, 0);
	assert_int_equal(policy->limits.file_size_bytes, 512 * 1024 * 1024);
	assert_int_equal(policy->limits.open_files, 1024);
	assert_int_equal(policy->limits.cpu_seconds, 300);
	assert_int_equal(policy->limits.memory_bytes, 0);
	assert_int_equal(policy->limits.processes, 0);
	assert_false(policy->limits.spill);
	assert_false(policy->limits.required);
}

/* No value is a default, and no two of a kind are equal. */
static const char full[] =
	"{'version':1,'filesystem':{'workspace_root':'/srv/a1/ws','working_dir':'/workspace/src',"
	"'stella_home':'/srv/home','user_tools_dir':'/srv/home/users/u1/.mise-tools','mounts':["
	"{'host_path':'/srv/a1/ws','view_path':'/workspace','access':'rw','quota_bytes':5,"
	"'quota_files':6},{'host_path':'/srv//s\\u00e9','view_path':'/opt/stella/agent-skills/',"
	"'access':'ro','optional':true},{'host_path':'/c','view_path':'/c','access':'cow'}],"
	"'temp_dir_host':'/srv/tmp','runtime':'none','symlinks':'deny','cache':'strict',"
	"'ownership':'host','hide':['**/.env'],'protect':['**/.git/hooks/**','x']},"
	"'network':{'mode':'disabled','timeout_ms':7},'env':{'Z':'1\\u001f\\u007f\\\"\\\\','A':''},"
	"'inherit_env':true,'env_override':true,'timeout_ms':8,'process':{'user':1234},"
	"'limits':{'output_bytes':100,'tail_bytes':9,'spill':true,'file_size_bytes':10,"
	"'open_files':11,'cpu_seconds':12,'memory_bytes':13,'processes':14,'required':true}}";

static void every_key_is_read(void **state)
{
	g_autofree char *text = requote(full);
	g_autoptr(StellaPolicy) policy = parse_or_fail(text);
	const PolicyMount *mount;
	const PolicyEnv *env;

	(void)state;
	assert_string_equal(policy->workspace_root, "/srv/a1/ws");
	assert_string_equal(policy->working_dir, "/workspace/src");
	assert_string_equal(policy->stella_home, "/srv/home");
	assert_string_equal(policy->user_tools_dir, "/srv/home/users/u1/.mise-tools");
	assert_string_equal(policy->temp_dir_host, "/srv/tmp");
	assert_int_equal(policy->mounts->len, 3);
	mount = policy->mounts->pdata[0];
	assert_int_equal(mount->access, STELLA_MOUNT_READ_WRITE);
	assert_int_equal(mount->quota_bytes, 5);
	assert_int_equal(mount->quota_files, 6);
	assert_false(mount->optional);
	mount = policy->mounts->pdata[1];
	assert_string_equal(mount->host_path, "/srv/s\xc3\xa9");
	assert_string_equal(mount->view_path, "/opt/stella/agent-skills");
	assert_int_equal(mount->access, STELLA_MOUNT_READ_ONLY);
	assert_true(mount->optional);
	mount = policy->mounts->pdata[2];
	assert_int_equal(mount->access, STELLA_MOUNT_COW);
	assert_int_equal(policy->runtime, POLICY_RUNTIME_NONE);
	assert_int_equal(policy->symlinks, POLICY_SYMLINKS_DENY);
	assert_int_equal(policy->cache, POLICY_CACHE_STRICT);
	assert_int_equal(policy->ownership, POLICY_OWNERSHIP_HOST);
	assert_string_equal(policy->hide->pdata[0], "**/.env");
	assert_string_equal(policy->protect->pdata[1], "x");
	assert_int_equal(policy->network_mode, STELLA_NETWORK_DISABLED);
	assert_int_equal(policy->network_timeout_ms, 7);
	assert_int_equal(policy->env->len, 2);
	env = policy->env->pdata[0];
	assert_string_equal(env->name, "Z");
	assert_string_equal(env->value, "1\x1f\x7f\"\\");
	assert_true(policy->inherit_env);
	assert_true(policy->env_override);
	assert_int_equal(policy->timeout_ms, 8);
	assert_int_equal(policy->process_uid, 1234);
	assert_int_equal(policy->limits.output_bytes, 100);
	assert_int_equal(policy->limits.tail_bytes, 9);
	assert_true(policy->limits.spill);
	assert_int_equal(policy->limits.file_size_bytes, 10);
	assert_int_equal(policy->limits.open_files, 11);
	assert_int_equal(policy->limits.cpu_seconds, 12);
	assert_int_equal(policy->limits.memory_bytes, 13);
	assert_int_equal(policy->limits.processes, 14);
	assert_true(policy->limits.required);
}

/* Writing is compared as text: what every_key_is_read proves of reading, this proves of writing, as
 * long as each key of the text appears in what is written. */
static void a_policy_that_is_written_reads_back_equal(void **state)
{
	static const char *const texts[] = { full, TOP("'env':{}"),
					     TOP("'process':{'user':'root'}"),
					     FS("'runtime':'host'") };

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
		g_autofree char *text = requote(texts[i]);
		g_autoptr(StellaPolicy) policy = parse_or_fail(text);
		g_autofree char *plain = policy_json_write(policy, false);
		g_autofree char *pretty = policy_json_write(policy, true);
		g_autoptr(StellaPolicy) again = parse_or_fail(plain);
		g_autoptr(StellaPolicy) third = parse_or_fail(pretty);
		g_autofree char *plain_again = policy_json_write(again, false);
		g_autofree char *plain_third = policy_json_write(third, false);

		assert_string_equal(plain, plain_again);
		assert_string_equal(plain, plain_third);
		assert_null(strchr(plain, '\n'));
		assert_non_null(strchr(pretty, '\n'));
	}
}

static void the_full_policy_is_written_value_by_value(void **state)
{
	g_autofree char *text = requote(full);
	g_autoptr(StellaPolicy) policy = parse_or_fail(text);
	g_autofree char *written = policy_json_write(policy, false);
	static const char *const parts[] = {
		"'version':1",
		"'workspace_root':'/srv/a1/ws','working_dir':'/workspace/src'",
		"'stella_home':'/srv/home','user_tools_dir':'/srv/home/users/u1/.mise-tools'",
		"{'host_path':'/srv/a1/ws','view_path':'/workspace','access':'rw','optional':false,"
		"'quota_bytes':5,'quota_files':6}",
		"'access':'ro','optional':true",
		"'access':'cow'",
		"'temp_dir_host':'/srv/tmp','runtime':'none','symlinks':'deny','cache':'strict',"
		"'ownership':'host','hide':['**/.env'],'protect':['**/.git/hooks/**','x']",
		"'network':{'mode':'disabled','timeout_ms':7}",
		"'inherit_env':true,'env_override':true,'timeout_ms':8,'process':{'user':1234}",
		"'output_bytes':100,'tail_bytes':9,'file_size_bytes':10,'open_files':11,"
		"'cpu_seconds':12,'memory_bytes':13,'processes':14,'spill':true,'required':true",
		"\\u001f",
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(parts); i++) {
		g_autofree char *part = requote(parts[i]);

		if (!strstr(written, part))
			fail_msg("%s is not in %s", part, written);
	}
}

/* As the gateway gets it, inside a message. */
static void a_policy_is_read_from_a_tree(void **state)
{
	g_autofree char *text = requote(full);
	g_autoptr(StellaPolicy) policy = parse_or_fail(text);
	g_autofree char *written = policy_json_write(policy, false);
	g_autoptr(JsonNode) root = json_from_string(written, -1);
	g_autoptr(JsonNode) list = json_node_new(JSON_NODE_ARRAY);
	g_autoptr(StellaPolicy) again = NULL;
	g_autofree char *message = NULL;
	g_autofree char *written_again = NULL;

	(void)state;
	assert_int_equal(policy_json_read(list, &again, &message), -EINVAL);
	assert_string_equal(message, "expected an object");
	g_clear_pointer(&message, g_free);
	assert_int_equal(policy_json_read(root, &again, &message), 0);
	written_again = policy_json_write(again, false);
	assert_string_equal(written, written_again);
	json_object_set_int_member(json_node_get_object(root), "unknown", 1);
	stella_policy_unref(g_steal_pointer(&again));
	assert_int_equal(policy_json_read(root, &again, &message), -EINVAL);
	assert_string_equal(message, "unknown: unknown key");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_is_checked_and_named),
		cmocka_unit_test(every_mount_is_checked_and_numbered),
		cmocka_unit_test(the_text_has_to_be_strict_json),
		cmocka_unit_test(sizes_and_depths_beyond_the_caps_are_refused),
		cmocka_unit_test(a_long_value_is_cut_in_a_message),
		cmocka_unit_test(absent_keys_take_their_defaults),
		cmocka_unit_test(every_key_is_read),
		cmocka_unit_test(a_policy_that_is_written_reads_back_equal),
		cmocka_unit_test(the_full_policy_is_written_value_by_value),
		cmocka_unit_test(a_policy_is_read_from_a_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
