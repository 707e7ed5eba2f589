/* Runs every file of the directories given as arguments through a fuzz target once: inputs that were found
 * to be bad stay an ordinary test, with any compiler. A directory without files fails, for then nothing
 * was tested. */
#include <glib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input ends where its memory ends, so that a sanitizer sees a read behind it. */
static void run_file(const char *path)
{
	g_autoptr(GError) error = NULL;
	g_autofree char *text = NULL;
	g_autofree uint8_t *exact = NULL;
	gsize size;

	if (!g_file_get_contents(path, &text, &size, &error)) {
		fprintf(stderr, "%s\n", error->message);
		exit(1);
	}
	exact = g_memdup2(text, size);
	LLVMFuzzerTestOneInput(exact ? exact : (const uint8_t *)"", size);
}

static int run_directory(const char *directory)
{
	g_autoptr(GError) error = NULL;
	g_autoptr(GDir) dir = g_dir_open(directory, 0, &error);
	const char *name;
	int count = 0;

	if (!dir) {
		fprintf(stderr, "%s\n", error->message);
		exit(1);
	}
	while ((name = g_dir_read_name(dir))) {
		g_autofree char *path = g_build_filename(directory, name, NULL);

		printf("%s\n", path);
		fflush(stdout); /* so that the last line names the input of a crash */
		run_file(path);
		count++;
	}
	return count;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (run_directory(argv[i]) == 0) {
			fprintf(stderr, "%s: no files\n", argv[i]);
			return 1;
		}
	}
	return argc > 1 ? 0 : 1;
}
