/* A profile as trace events, as Chrome's trace viewer and Perfetto read them. */
#include "profile.h"

#include <stdlib.h>
#include <string.h>

#include "picture.h"

/* Rows of the trace: the host is one process, the device another, with a thread for each stream. */
#define HOST 1
#define DEVICE 2

typedef struct trace_row {
    int process, thread;
} trace_row;

static void print_text(FILE *file, const char *text) {
    json_t *value = text_json(text);
    char *quoted = value != NULL ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    fputs(quoted != NULL ? quoted : "\"\"", file);
    free(quoted);
    json_decref(value);
}

/* Takes the reference of `arguments`, which may be NULL for none. Times become microseconds. */
static void print_event(FILE *file, trace_row row, const char *name, const char *category, double start, double taken,
                        json_t *arguments) {
    fputs(",\n{\"name\":", file);
    print_text(file, name);
    fprintf(file, ",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f", category, row.process,
            row.thread, start / 1e3, taken / 1e3);
    if (arguments != NULL) {
        char *object = json_dumps(arguments, JSON_COMPACT);
        fprintf(file, ",\"args\":%s", object != NULL ? object : "{}");
        free(object);
        json_decref(arguments);
    }
    fputs("}", file);
}

/* What a process (thread 0) or one of its threads is called. */
static void print_name(FILE *file, trace_row row, const char *name) {
    fprintf(file, "{\"name\":\"%s_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":",
            row.thread == 0 ? "process" : "thread", row.process, row.thread);
    print_text(file, name);
    fputs("}}", file);
}

static void print_names(FILE *file, const profile *profile) {
    print_name(file, (trace_row){HOST, 0}, "samebit");
    if (profile->device == NULL)
        return;
    int streams = 1;
    for (size_t t = 0; t < profile->task_count; t++)
        streams = profile->tasks[t].stream >= streams ? profile->tasks[t].stream + 1 : streams;
    fputs(",\n", file);
    print_name(file, (trace_row){HOST, 1}, "CPU: nodes and copies, each waited for");
    fputs(",\n", file);
    print_name(file, (trace_row){DEVICE, 0}, profile->device);
    for (int stream = 1; stream <= streams; stream++) {
        char name[32];
        snprintf(name, sizeof name, "stream %d", stream);
        fputs(",\n", file);
        print_name(file, (trace_row){DEVICE, stream}, name);
    }
}

static void print_call(FILE *file, const profile *profile, const profiled_call *call, double origin) {
    const profiled_node *node = &profile->nodes[call->node];
    double start = (double)call->start_ns - origin, taken = (double)(call->end_ns - call->start_ns);
    if (node->transfer) {
        print_event(file, (trace_row){HOST, 1}, node->name, "copy", start, taken,
                    json_pack("{s:s, s:I}", "copy", node->on_device ? "to device" : "to host", "bytes",
                              (json_int_t)node->bytes));
        return;
    }
    json_t *arguments = json_pack("{s:o, s:o, s:I, s:o, s:o}", "operator", text_json(node->op), "kernel",
                                  text_json(node->kernel), "output_bytes", (json_int_t)node->bytes, "flops",
                                  node->flops >= 0 ? json_integer(node->flops) : json_null(), "moved_bytes",
                                  node->moved >= 0 ? json_integer(node->moved) : json_null());
    if (profile->device != NULL && arguments != NULL)
        json_object_set_new(arguments, "on", json_string(node->on_device ? "cuda" : "cpu"));
    if (node->why_cpu != NULL && arguments != NULL)
        json_object_set_new(arguments, "why not on the device", text_json(node->why_cpu));
    print_event(file, (trace_row){HOST, 1}, node->name, op_family_name(op_family(node->op)), start, taken, arguments);
}

static void print_task(FILE *file, const profile *profile, const profiled_task *task, double origin) {
    const profiled_node *node = task->node >= 0 ? &profile->nodes[task->node] : NULL;
    bool copies = strncmp(task->task, "copy to", 7) == 0;
    json_t *arguments = node == NULL ? NULL
                                     : json_pack("{s:o, s:o}", node->transfer ? "value" : "node", text_json(node->name),
                                                 "operator", text_json(node->op));
    print_event(file, (trace_row){DEVICE, task->stream + 1}, task->task, copies ? "copy" : "kernel",
                (double)task->start_ns - origin, (double)(task->end_ns - task->start_ns), arguments);
}

void write_trace(FILE *file, const profile *profile) {
    double origin = profile->run_start_ns[0];
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", file);
    print_names(file, profile);
    for (int r = 0; r < profile->runs; r++) {
        char name[64];
        snprintf(name, sizeof name, "run %d", r + 1);
        print_event(file, (trace_row){HOST, 1}, name, "run", profile->run_start_ns[r] - origin, profile->run_ns[r],
                    NULL);
    }
    for (size_t c = 0; c < profile->call_count; c++)
        print_call(file, profile, &profile->calls[c], origin);
    for (size_t t = 0; t < profile->task_count; t++)
        print_task(file, profile, &profile->tasks[t], origin);
    fputs("\n]}\n", file);
}
