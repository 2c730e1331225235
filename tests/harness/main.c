/* The harness as a program; --help says how to use it. */
#include <inttypes.h>
#include <stdarg.h>

#include "base/allocation.h"
#include "harness/harness.h"

static harness the; /* for harness_fail alone */

static const char help[] =
    "harness: runs cases of kernels by every implementation and compares the bits with the definition's.\n"
    "\n"
    "  --only PATTERN   cases whose name matches; * stands for any text\n"
    "  --case NAME      this case alone\n"
    "  --every N        of those one in N, which their names decide\n"
    "  --seed N         another seed for all values (42)\n"
    "  --side SIDE      cpu or cuda; both unless given\n"
    "  --driver FILE    a CUDA driver's library (libcuda.so.1) in place of the fake one\n"
    "  --cases FOLDER   where the cases lie that are written as text, if tests/cases has moved since the build\n"
    "  --list           says what the cases are and runs none: operator, inputs (dtype, extents, layout unless packed, "
    "values\n"
    "                   that are known beforehand), attributes, outputs, what the elements are like, tiles that are "
    "forced\n"
    "  --bench          times the cases, without what is made ready before: a line for each implementation that "
    "computes a\n"
    "                   node, beside its definition\n"
    "  --plant          spoils a bit of whatever was computed: all cases that give a number must fail\n"
    "  --plant-used     lets kernels take the whole extent where only a part is used: bounded cases must fail\n";

_Noreturn void harness_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("FAILED  %s\n  ", the.name);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n  again     %s --case %s --seed %" PRIu64 "%s%s\n", the.program, the.name, the.seed,
           the.driver != NULL ? " --driver " : "", the.driver != NULL ? the.driver : "");
    exit(1);
}

static bool parse(harness *h, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(word, "--list") == 0)
            h->list = true;
        else if (strcmp(word, "--bench") == 0)
            h->bench = true;
        else if (strcmp(word, "--plant") == 0)
            h->plant = true;
        else if (strcmp(word, "--plant-used") == 0)
            h->plant_used = true;
        else if (value == NULL)
            return false;
        else if (strcmp(word, "--only") == 0)
            h->only = argv[++i];
        else if (strcmp(word, "--case") == 0)
            h->exactly = argv[++i];
        else if (strcmp(word, "--every") == 0 && strtoull(value, NULL, 10) > 0)
            h->every = strtoull(argv[++i], NULL, 10);
        else if (strcmp(word, "--driver") == 0)
            h->driver = argv[++i];
        else if (strcmp(word, "--cases") == 0)
            h->cases = argv[++i];
        else if (strcmp(word, "--seed") == 0)
            h->seed = strtoull(argv[++i], NULL, 0);
        else if (strcmp(word, "--side") == 0 && (strcmp(value, "cpu") == 0 || strcmp(value, "cuda") == 0))
            h->sides = strcmp(argv[++i], "cpu") == 0 ? HARNESS_CPU : HARNESS_CUDA;
        else
            return false;
    }
    return true;
}

/* Whether any case of the group can be wanted. */
static bool wants_group(const char *group, const char *pattern) {
    size_t length = pattern != NULL ? strcspn(pattern, "*") : 0, own = strlen(group);
    return strncmp(group, pattern != NULL ? pattern : "", length < own ? length : own) == 0;
}

int main(int argc, char **argv) {
    harness *h = &the;
    *h = (harness){
        .seed = 42, .every = 1, .program = argv[0], .sides = HARNESS_CPU | HARNESS_CUDA, .cases = CASES_FOLDER};
    if (!parse(h, argc, argv)) {
        fputs(help, stderr);
        return 2;
    }
    if (!harness_enter_files(h)) {
        fprintf(stderr, "harness: no cases lie in %s: --cases says where they do\n", h->cases);
        return 2;
    }
    for (const harness_group *group = harness_groups(); group != NULL; group = group->next) {
        harness_begin_group(h, group);
        if (wants_group(h->group, h->exactly != NULL ? h->exactly : h->only))
            group->run(h);
    }
    harness_close_device(h);
    if (h->list)
        return 0;
    printf("%" PRId64 " cases, %" PRId64 " differences, %" PRId64 " without a kernel where none is needed, %" PRId64
           " runs at a capacity\n",
           h->ran, h->failed, h->absent, h->at_capacity);
    return h->ran == 0 || h->failed != 0;
}
