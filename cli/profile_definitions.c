/* What a profile finds out about definitions: nodes that no kernel took, and why, where they take a part of the time that
 * is worth somebody's notice. */
#include "profile.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"

/* Of a run's time: below it a node is not named. */
#define LEAST_SHARE 0.01
/* Nodes named. */
#define SHOWN 10

/* The measured node of that name, from `from` on; -1: it has not run. */
static int find_measured(const profile *profile, const char *name, bool inside, int from) {
    for (int n = from; n < profile->node_count; n++) {
        const profiled_node *node = &profile->nodes[n];
        if ((node->depth > 0) == inside && !node->transfer && strcmp(node->name, name) == 0)
            return n;
    }
    return -1;
}

bool note_definitions(profile *profile, const sb_inspection *graph, bool inside) {
    for (int i = 0; i < sb_inspection_node_count(graph); i++) {
        const sb_inspected_node *node = sb_inspection_node(graph, i);
        bool fused = strcmp(node->op, "Fused") == 0;
        for (int b = 0; b < node->body_count && !fused; b++) {
            if (!note_definitions(profile, node->bodies[b], true))
                return false;
        }
        /* What runs other nodes takes their time, not one of its own. */
        if (node->kernel == NULL || strcmp(node->kernel, "reference") != 0 || (node->body_count > 0 && !fused))
            continue;
        int at = find_measured(profile, node->name, inside, 0);
        if (at < 0 || profile->nodes[at].on_device || profile->nodes[at].why_reference != NULL)
            continue;
        profile->nodes[at].why_reference = strdup(node->why);
        if (profile->nodes[at].why_reference == NULL)
            return false;
    }
    return true;
}

void print_definitions(const profile *profile, const int *order) {
    double sum = 0, whole = mean_run_ns(profile);
    int named = 0;
    for (int n = 0; n < profile->node_count; n++)
        sum += profile->nodes[n].why_reference != NULL ? mean_node_ns(profile, &profile->nodes[n]) : 0;
    if (share(sum, whole) < LEAST_SHARE)
        return;
    printf("%.1f%% of the time is in reference evaluation, which no kernel has taken over:\n", 100 * share(sum, whole));
    for (int i = 0; i < profile->node_count; i++) {
        const profiled_node *node = &profile->nodes[order[i]];
        char op[TEXT_BYTES], name[TEXT_BYTES], why[TEXT_BYTES];
        double part = share(mean_node_ns(profile, node), whole);
        if (node->why_reference == NULL || part < LEAST_SHARE || named++ >= SHOWN)
            continue;
        printf("%7.1f%%  %s %s: %s\n", 100 * part, printable(node->op, op), printable(node->name, name),
               printable(node->why_reference, why));
    }
    if (named > SHOWN)
        printf("and %d more of 1%% and above\n", named - SHOWN);
    putchar('\n');
}
