/* The help text of the options that make a policy; see policy-options.h. A test compares it with the options
 * that there are. */
#include "common/policy-options.h"

const char *policy_options_help(void)
{
	return "Policy options:\n"
	       "  --policy FILE         the policy, as JSON (see stella-policy(5)); FILE may be a "
	       "pipe\n"
	       "  --workspace DIR       the workspace, writable at /workspace (default: the "
	       "current "
	       "directory)\n"
	       "  --user-dir DIR        the user's data, writable at /user\n"
	       "  --stella-home DIR     installed tools: its bin and .mise-tools, read-only below "
	       "/opt/stella\n"
	       "  --ro HOST[:VIEW]      mount HOST read-only at VIEW (default: at its own path);\n"
	       "                        a HOST with \":/\" in it needs its VIEW\n"
	       "  --rw HOST[:VIEW]      the same, writable\n"
	       "  --same-path           mount the workspace at its own path too, and start there\n"
	       "  --no-network          no network but a loopback of the sandbox's own\n"
	       "  --runtime MODE        host: with the host's programs and libraries (default for "
	       "commands);\n"
	       "                        none: without (default for a view to look into)\n"
	       "  --symlinks MODE       contained (default): links that stay in the view work;\n"
	       "                        deny: none in a mounted directory does\n"
	       "  --cache MODE          auto (default): host-side changes show within a second;\n"
	       "                        strict: at once; exclusive: only the view writes\n"
	       "  --limit NAME=VALUE    output_bytes, tail_bytes, file_size_bytes, open_files, "
	       "cpu_seconds,\n"
	       "                        memory_bytes, processes (sizes take K, M and G); "
	       "spill=true, required=true\n"
	       "  --backend NAME        what runs commands: fsgate (default), bwrap (where there "
	       "is no "
	       "FUSE), none\n"
	       "                        (no sandbox), nop (nothing); see stella-exec(1)\n";
}
