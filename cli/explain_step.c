#include "explain_step.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"

enum { WARMUP = 3, STEPS = 8 };

typedef struct watch {
    explained_step *explained;
    double (*node_bytes)(const void *context, const char *name);
    const void *context;
    const char *last_node; /* whose bytes are counted already: several kernels may work for one node */
    bool watching;
} watch;

/* ---- collecting ---- */

/* A name without its numbers: "layers.*.attention" of all layers. */
static char *without_numbers(const char *name) {
    char *text = malloc(strlen(name) + 1), *to = text;
    if (text == NULL)
        return NULL;
    for (const char *at = name; *at != '\0';) {
        bool number = *at >= '0' && *at <= '9' && (at == name || at[-1] == '.' || at[-1] == '_' || at[-1] == '/');
        *to++ = number ? '*' : *at;
        at++;
        while (number && *at >= '0' && *at <= '9')
            at++;
    }
    *to = '\0';
    return text;
}

/* NULL: memory has run out. */
static explained_kernel *find_kernel(explained_step *explained, const char *kernel, const char *node, const char *op) {
    char *kind = without_numbers(node);
    for (int i = 0; i < explained->count && kind != NULL; i++) {
        explained_kernel *known = &explained->kernels[i];
        if (strcmp(known->kernel, kernel) == 0 && strcmp(known->node, kind) == 0) {
            free(kind);
            return known;
        }
    }
    if (kind != NULL && explained->count == explained->capacity) {
        int capacity = explained->capacity * 2 + 32;
        explained_kernel *larger = realloc(explained->kernels, (size_t)capacity * sizeof *larger);
        if (larger != NULL) {
            explained->kernels = larger;
            explained->capacity = capacity;
        }
    }
    char *name = malloc(strlen(kernel) + 1);
    if (kind == NULL || name == NULL || explained->count == explained->capacity) {
        free(kind);
        free(name);
        explained->failed = true;
        return NULL;
    }
    strcpy(name, kernel);
    explained->kernels[explained->count] = (explained_kernel){.kernel = name, .node = kind, .op = op};
    return &explained->kernels[explained->count++];
}

static void note(watch *watch, const char *kernel, const char *node, const char *op, double ns) {
    bool computes = node != NULL && op != NULL && strcmp(op, SB_TRANSFER) != 0;
    explained_kernel *known = find_kernel(watch->explained, kernel, node != NULL ? node : "", op);
    if (known == NULL)
        return;
    known->times += 1.0 / STEPS;
    known->ns += ns / STEPS;
    if (computes && node != watch->last_node)
        known->bytes += watch->node_bytes(watch->context, node) / STEPS;
    watch->last_node = node;
}

static sb_status note_tasks(void *context, const sb_task_span *spans, size_t count, sb_error *error) {
    watch *watch = context;
    (void)error;
    for (size_t i = 0; i < count && watch->watching; i++)
        note(watch, spans[i].task, spans[i].name, spans[i].op, (double)(spans[i].end_ns - spans[i].start_ns));
    return SB_OK;
}

/* On the CPU; what a device computes is told by its tasks. */
static sb_status note_node(void *context, sb_node_event *event, sb_error *error) {
    watch *watch = context;
    (void)error;
    if (watch->watching && event->depth == 0 && !event->on_device && strcmp(event->op, SB_TRANSFER) != 0)
        note(watch, event->kernel, event->name, event->op, (double)(event->end_ns - event->start_ns));
    return SB_OK;
}

static int step(sb_llm_session *session, int64_t count, const int64_t *tokens) {
    static const int64_t first = 0;
    sb_tensor *logits;
    sb_error error;
    if (sb_llm_step(session, count, tokens, count == 1, &first, &logits, &error) != SB_OK)
        return report(&error);
    sb_tensor_release(logits);
    return EXIT_RIGHT;
}

int explain_step(sb_llm *llm, const sb_session_options *options, int64_t length, const int64_t *tokens,
                 double (*node_bytes)(const void *context, const char *name), const void *context,
                 explained_step *explained) {
    watch watch = {.explained = explained, .node_bytes = node_bytes, .context = context};
    sb_session_options watched = *options;
    sb_llm_session *session;
    sb_error error;
    *explained = (explained_step){.length = length, .steps = STEPS};
    watched.observer = note_node;
    watched.observer_context = &watch;
    watched.observer_times_only = true;
    watched.task_observer = options->device != NULL ? note_tasks : NULL;
    watched.task_observer_context = &watch;
    if (sb_llm_session_create(llm, &watched, &session, &error) != SB_OK)
        return report(&error);
    int code = EXIT_RIGHT;
    for (int64_t done = 0, piece; done < length && code == EXIT_RIGHT; done += piece) {
        piece = length - done > 512 ? 512 : length - done;
        code = step(session, piece, tokens + done);
    }
    for (int i = -WARMUP; i < STEPS && code == EXIT_RIGHT; i++) { /* each behind as many positions as the others */
        watch.watching = i >= 0;
        watch.last_node = NULL;
        code = step(session, 1, tokens);
        if (code == EXIT_RIGHT && sb_llm_session_trim(session, length, &error) != SB_OK)
            code = report(&error);
    }
    sb_llm_session_destroy(session);
    return code == EXIT_RIGHT && explained->failed ? out_of_memory() : code;
}

void free_explained_step(explained_step *explained) {
    for (int i = 0; i < explained->count; i++) {
        free(explained->kernels[i].kernel);
        free(explained->kernels[i].node);
    }
    free(explained->kernels);
    *explained = (explained_step){0};
}

/* ---- telling ---- */

static double total_ns(const explained_step *explained) {
    double sum = 0;
    for (int i = 0; i < explained->count; i++)
        sum += explained->kernels[i].ns;
    return sum;
}

static double total_bytes(const explained_step *explained) {
    double sum = 0;
    for (int i = 0; i < explained->count; i++)
        sum += explained->kernels[i].bytes;
    return sum;
}

/* Of what the bandwidth would let be read and written in that time; where nothing is known of one of them, "". */
static const char *share_text(double bytes, double ns, double bandwidth, char *text, size_t room) {
    *text = '\0';
    if (bytes > 0 && ns > 0 && bandwidth > 0)
        snprintf(text, room, "%.1f %%", 100 * bytes / (ns * 1e-9) / bandwidth);
    return text;
}

void print_explained_step(const explained_step *explained, double bandwidth) {
    char bytes[TEXT_BYTES], share[32];
    double whole = total_ns(explained), all = total_bytes(explained), times = 0;
    for (int i = 0; i < explained->count; i++)
        times += explained->kernels[i].times;
    printf("\na token behind %lld: %.4g kernels and copies, one by one %.1f us in all (the mean of %d)\n",
           (long long)explained->length, times, whole / 1e3, explained->steps);
    printf("%9s %8s %9s %7s %12s %9s %9s  %s\n", "times", "us each", "us in all", "share", "bytes each", "GB/s",
           "of limit", "kernel: node");
    for (int i = 0; i < explained->count; i++) {
        const explained_kernel *k = &explained->kernels[i];
        printf("%9.4g %8.2f %9.1f %5.1f %% %12s ", k->times, k->ns / k->times / 1e3, k->ns / 1e3, 100 * k->ns / whole,
               k->bytes > 0 ? bytes_text(k->bytes / k->times, bytes) : "");
        if (k->bytes > 0 && k->ns > 0)
            printf("%9.1f %9s", k->bytes / k->ns, share_text(k->bytes, k->ns, bandwidth, share, sizeof share));
        else
            printf("%9s %9s", "", "");
        printf("  %s%s%s%s%s%s\n", k->kernel, *k->node != '\0' ? ": " : "", k->node, k->op != NULL ? " (" : "",
               k->op != NULL ? k->op : "", k->op != NULL ? ")" : "");
    }
    printf("%9s %8s %9.1f %7s %12s %9.1f %9s  all\n", "", "", whole / 1e3, "", bytes_text(all, bytes), all / whole,
           share_text(all, whole, bandwidth, share, sizeof share));
}

json_t *explained_step_json(const explained_step *explained, double bandwidth) {
    json_t *kernels = json_array();
    for (int i = 0; i < explained->count; i++) {
        const explained_kernel *k = &explained->kernels[i];
        bool known = k->bytes > 0 && k->ns > 0 && bandwidth > 0;
        json_array_append_new(
            kernels, json_pack("{s:s, s:s, s:s?, s:f, s:f, s:f, s:o}", "kernel", k->kernel, "nodes", k->node, "op",
                               k->op, "times", k->times, "us", k->ns / 1e3, "bytes", k->bytes, "bandwidth_share",
                               known ? json_real(k->bytes / (k->ns * 1e-9) / bandwidth) : json_null()));
    }
    return json_pack("{s:I, s:f, s:f, s:o}", "behind", (json_int_t)explained->length, "us", total_ns(explained) / 1e3,
                     "bytes", total_bytes(explained), "kernels", kernels);
}
