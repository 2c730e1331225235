/* What a comparison found, on the terminal. */
#include "compare.h"

#include <string.h>

#include "text.h"

/* Names printed without --verbose. */
#define SHOWN_NAMES 12

static void print_worst(const findings *findings, const finding *finding) {
    const sb_comparison *found = &finding->comparison;
    char room[TEXT_BYTES], number[32];
    if (finding->why != NULL) {
        printf("%s", printable(finding->why, room));
        return;
    }
    if (found->different == 0) {
        printf("equal in %s elements", grouped(found->elements, room));
        return;
    }
    printf("%s of ", grouped(found->different, room));
    printf("%s elements differ; worst at %s: %.9g where ", grouped(found->elements, room), finding->index,
           found->worst_left);
    snprintf(number, sizeof number, "%.9g", found->worst_right);
    printf("%s", put_other(findings, number, room));
    if (found->worst_ulps != UINT64_MAX)
        printf(", %llu %s apart", (unsigned long long)found->worst_ulps, found->worst_ulps == 1 ? "ulp" : "ulps");
}

static void print_finding(const findings *findings, const finding *finding) {
    char room[TEXT_BYTES];
    printf("%4d  ", finding->node);
    if (findings->device != NULL)
        printf("%-4s  ", ran_where_name(finding->ran));
    printf("%s", printable(finding->op, room));
    printf(" %s", printable(finding->node_name, room));
    if (strcmp(finding->output, finding->node_name) != 0)
        printf(" → %s", printable(finding->output, room));
    printf(": %s: ", finding_state_name(finding->state));
    print_worst(findings, finding);
    if (finding->why_cpu != NULL)
        printf(" (on the CPU: %s)", printable(finding->why_cpu, room));
    putchar('\n');
}

/* Whether random numbers have gone into the finding, as far as operators up to there tell. */
static bool is_random(const findings *findings, const finding *finding) {
    static const char *const ops[] = {"Bernoulli",        "Multinomial",   "RandomNormal",
                                      "RandomNormalLike", "RandomUniform", "RandomUniformLike"};
    for (int i = 0; i < findings->count && findings->items[i].node <= finding->node; i++) {
        for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
            if (strcmp(findings->items[i].op, ops[k]) == 0)
                return true;
        }
    }
    return strcmp(finding->op, "Dropout") == 0; /* one that does not train is an identity */
}

static void print_first(const findings *findings) {
    const finding *first = findings->first;
    char room[TEXT_BYTES];
    printf("the first node that differs is number %d, %s ", first->node, printable(first->op, room));
    printf("%s, in its output ", printable(first->node_name, room));
    printf("%s (", printable(first->output, room));
    printf("%s, kernel ", printable(first->type, room));
    printf("%s%s):\n      ", printable(first->kernel, room),
           findings->device == NULL      ? ""
           : first->ran == RAN_ON_DEVICE ? ", on the device"
                                         : ", on the CPU");
    print_worst(findings, first);
    putchar('\n');
    if (is_random(findings, first))
        puts("      random numbers went into it: each implementation draws its own");
}

/* The names of what was not compared, with the reason behind those that share it, up to a line's
 * worth: --verbose, JSON and the page have all. */
static void print_unchecked(const findings *findings) {
    char room[TEXT_BYTES];
    const char *why = NULL;
    int total = 0;
    for (int i = 0; i < findings->count; i++) {
        const finding *finding = &findings->items[i];
        if (finding->state != FINDING_UNCHECKED || total++ >= SHOWN_NAMES)
            continue;
        bool same = why != NULL && strcmp(why, finding->why) == 0;
        if (why != NULL && !same)
            printf(" (%s)", printable(why, room));
        printf("%s%s", why == NULL ? "not compared: " : ", ", printable(finding->output, room));
        why = finding->why;
    }
    if (total > 0)
        printf(" (%s)", printable(why, room));
    if (total > SHOWN_NAMES)
        printf(" and %d more", total - SHOWN_NAMES);
    if (total > 0)
        putchar('\n');
}

static void print_unused(const findings *findings) {
    char room[TEXT_BYTES];
    if (findings->unused == 0)
        return;
    printf("%d recorded array%s the name of no value: ", findings->unused, findings->unused == 1 ? " has" : "s have");
    int shown = findings->unused < SHOWN_NAMES ? findings->unused : SHOWN_NAMES;
    for (int i = 0; i < shown; i++)
        printf("%s%s", i > 0 ? ", " : "", printable(findings->unused_names[i], room));
    if (shown < findings->unused)
        printf(" and %d more", findings->unused - shown);
    putchar('\n');
}

/* A line for each reason to be on the CPU, and how many nodes ran where. */
static void print_places(const findings *findings) {
    char room[TEXT_BYTES];
    if (findings->device == NULL)
        return;
    int shown = 0, last = -1;
    for (int i = 0; i < findings->count; i++) {
        const finding *finding = &findings->items[i];
        if (finding->why_cpu == NULL || finding->node == last)
            continue;
        last = finding->node;
        if (shown++ >= SHOWN_NAMES)
            continue;
        printf("on the CPU: %s ", printable(finding->op, room));
        printf("%s: ", printable(finding->node_name, room));
        printf("%s\n", printable(finding->why_cpu, room));
    }
    if (shown > SHOWN_NAMES)
        printf("and %d more on the CPU: --verbose prints them\n", shown - SHOWN_NAMES);
    int copies = findings->copy_count - findings->once_count;
    printf("%d node%s ran on %s, %d on the CPU, with %d cop%s between them", findings->on_device,
           findings->on_device == 1 ? "" : "s", printable(findings->device, room), findings->on_cpu, copies,
           copies == 1 ? "y" : "ies");
    if (findings->once_count > 0)
        printf(" and %d constant%s copied once", findings->once_count, findings->once_count == 1 ? "" : "s");
    putchar('\n');
}

void print_findings(const findings *findings, bool verbose) {
    for (int i = 0; i < findings->count && verbose; i++)
        print_finding(findings, &findings->items[i]);
    print_unchecked(findings);
    print_unused(findings);
    print_places(findings);
    if (findings->first != NULL)
        print_first(findings);
    printf("%d node%s: %d compared (%d equal", findings->node_count, findings->node_count == 1 ? "" : "s",
           findings->compared, findings->equal);
    if (findings->within > 0)
        printf(", %d within the tolerance", findings->within);
    printf(", %d different), %d not compared\n", findings->different, findings->unchecked);
}
