/* Damaged versions of the standard's models: each is loaded and, where it still is a model, run.
 * Nothing may crash, hang, step out of bounds (with a sanitizer), leak, or be reported as a defect
 * of the library.
 *
 *   mutations DATA COUNT [MODEL [FIRST]]
 *
 * makes COUNT versions of every model below the folder DATA, or of those whose path contains MODEL,
 * from version FIRST on. A version is a function of the model's bytes and its number alone, so that
 * what this program reports can be repeated.
 *
 * The work is done in a child, which says in shared memory what it is at: the parent reports
 * crashes and hangs, and starts another child behind them. */
#define _GNU_SOURCE /* nftw */
#include <ftw.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <samebit/samebit.h>

#include "base/allocation.h"
#include "support/random.h"

/* Limits under which every version has to end soon. */
#define ITERATIONS 100
#define RUN_BYTES (INT64_C(4) << 20)
#define LOAD_BYTES (INT64_C(256) << 20)
/* Until a version is called a hang. A sanitizer makes all of it some twenty times slower: the slowest version that ends, a maximum
 * over 60 x 80 elements at each of 430 x 250 places by the reference evaluation, takes 20 to 23 s of a processor with two of them, and
 * 47 s beside another load. */
#define PATIENCE_SECONDS 120
#define MOST_MODELS 4000
#define MOST_FAULTS 40

/* What the child is at; shared with the parent. */
typedef struct progress {
    atomic_int model, version;
    atomic_int faults; /* that the child has reported */
    atomic_int refused, failed, ran;
    atomic_int slowest_ms, slowest_model, slowest_version;
} progress;

static char *paths[MOST_MODELS];
static int path_count;
static const char *wanted = "";
static progress *shared;

static int note_path(const char *path, const struct stat *about, int kind, struct FTW *where) {
    size_t length = strlen(path);
    if (kind == FTW_F && length > 11 && strcmp(path + length - 11, "/model.onnx") == 0 &&
        strstr(path, wanted) != NULL && path_count < MOST_MODELS)
        paths[path_count++] = strdup(path);
    return 0;
}

static int compare_paths(const void *left, const void *right) {
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static void fault(const char *what, const char *detail) {
    atomic_fetch_add(&shared->faults, 1);
    fprintf(stderr, "%s, version %d: %s%s%s\n", paths[shared->model], shared->version, what,
            detail[0] != '\0' ? ": " : "", detail);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- versions ---- */

typedef struct bytes {
    uint8_t *data;
    size_t size;
} bytes;

static bytes read_file(const char *path) {
    bytes file = {NULL, 0};
    FILE *stream = fopen(path, "rb");
    if (stream == NULL)
        return file;
    fseek(stream, 0, SEEK_END);
    long size = ftell(stream);
    rewind(stream);
    file.data = malloc((size_t)size + 1);
    file.size = file.data != NULL ? fread(file.data, 1, (size_t)size, stream) : 0;
    fclose(stream);
    return file;
}

static size_t place(random_source *source, size_t size) {
    return (size_t)random_between(source, 0, (int64_t)size - 1);
}

/* Bytes that lengths, counts and extents are made of, at their ends. */
static const uint8_t corners[] = {0x00, 0x01, 0x02, 0x7f, 0x80, 0xff};

static void flip(random_source *source, bytes version) {
    for (int64_t flips = random_between(source, 1, 3); flips > 0; flips--)
        version.data[place(source, version.size)] ^= (uint8_t)(1u << random_between(source, 0, 7));
}

/* Writes bytes of one place over another. */
static void splice(random_source *source, bytes version) {
    size_t from = place(source, version.size), to = place(source, version.size);
    size_t room = version.size - (from > to ? from : to);
    size_t count = (size_t)random_between(source, 1, 24);
    memmove(version.data + to, version.data + from, count < room ? count : room);
}

static void replace(random_source *source, bytes version) {
    for (int64_t count = random_between(source, 1, 2); count > 0; count--)
        version.data[place(source, version.size)] = corners[place(source, sizeof corners)];
}

/* ---- versions that are still sound protobuf: without these, few would get further than the first checks ---- */

/* A field as it lies in the file: key, then a number or, behind its length, `content`. */
typedef struct field {
    size_t key_bytes;
    unsigned wire; /* 0: varint, 1: 8 bytes, 2: length and content, 5: 4 bytes */
    bytes content; /* a varint's own bytes */
    size_t size;   /* of all of it */
} field;

static size_t read_varint(bytes from, uint64_t *value) {
    *value = 0;
    for (size_t i = 0; i < from.size && i < 10; i++) {
        *value |= (uint64_t)(from.data[i] & 0x7f) << (7 * i);
        if (from.data[i] < 0x80)
            return i + 1;
    }
    return 0;
}

static bytes behind(bytes all, size_t offset) {
    return (bytes){all.data + offset, all.size - offset};
}

static bool read_field(bytes from, field *found) {
    uint64_t key, length = 0;
    size_t used = read_varint(from, &key);
    *found = (field){.key_bytes = used, .wire = key & 7};
    if (used == 0 || key >> 3 == 0 || key >> 3 > 50)
        return false;
    bytes rest = behind(from, used);
    size_t prefix = 0;
    if (found->wire == 0)
        length = read_varint(rest, &key);
    else if (found->wire == 2)
        prefix = read_varint(rest, &length);
    else
        length = found->wire == 1 ? 8 : found->wire == 5 ? 4 : 0;
    if (prefix > rest.size || length > rest.size - prefix || (found->wire == 2 ? prefix : length) == 0)
        return false;
    found->content = (bytes){rest.data + prefix, length};
    found->size = used + prefix + length;
    return true;
}

static bool is_message(bytes content) {
    field next;
    size_t at = 0;
    for (; at < content.size; at += next.size) {
        if (!read_field(behind(content, at), &next))
            return false;
    }
    return content.size > 1;
}

#define MOST_FIELDS 4096

/* Lists the fields of a message and of the messages in it. */
static void list_fields(bytes message, int depth, field *fields, int *count) {
    field next;
    for (size_t at = 0; at < message.size && *count < MOST_FIELDS; at += next.size) {
        if (!read_field(behind(message, at), &next))
            return;
        fields[(*count)++] = next;
        if (next.wire == 2 && depth < 20 && is_message(next.content))
            list_fields(next.content, depth + 1, fields, count);
    }
}

/* What happens to the field whose content begins at `target`: it is written `copies` times with other content. */
typedef struct edit {
    const uint8_t *target;
    int copies;
    bytes content;
    size_t room; /* that the longest edited version takes */
} edit;

static void append(bytes *out, const void *data, size_t size) {
    if (size != 0)
        memcpy(out->data + out->size, data, size);
    out->size += size;
}

static void append_length(bytes *out, uint64_t value) {
    for (; value >= 0x80; value >>= 7)
        out->data[out->size++] = (uint8_t)(value | 0x80);
    out->data[out->size++] = (uint8_t)value;
}

static void write_edited(bytes message, const edit *edit, bytes *out);

static void write_field(const field *from, const uint8_t *key, bytes content, bytes *out) {
    append(out, key, from->key_bytes);
    if (from->wire == 2)
        append_length(out, content.size);
    append(out, content.data, content.size);
}

static void write_edited(bytes message, const edit *edit, bytes *out) {
    field next;
    for (size_t at = 0; at < message.size && read_field(behind(message, at), &next); at += next.size) {
        const uint8_t *key = message.data + at, *content = next.content.data;
        if (content == edit->target) {
            for (int i = 0; i < edit->copies; i++)
                write_field(&next, key, edit->content, out);
        } else if (content < edit->target && edit->target < content + next.content.size) {
            bytes inner = {malloc(edit->room), 0};
            write_edited(next.content, edit, &inner);
            write_field(&next, key, inner, out);
            free(inner.data);
        } else {
            write_field(&next, key, next.content, out);
        }
    }
}

/* Numbers where something may overflow, or be forgotten. */
static uint64_t corner_number(random_source *source) {
    static const uint64_t numbers[] = {0,          1,
                                       2,          3,
                                       7,          16,
                                       255,        65536,
                                       INT32_MAX,  UINT32_MAX,
                                       INT64_MAX,  (uint64_t)INT64_MIN,
                                       UINT64_MAX, UINT64_MAX - 1};
    if (random_between(source, 0, 2) == 0)
        return UINT64_C(1) << random_between(source, 0, 63);
    return numbers[place(source, sizeof numbers / sizeof *numbers)];
}

/* Other content for a field, in `room` (the content's size and 16 bytes more): a corner, or damage. */
static bytes other_content(random_source *source, const field *from, uint8_t *room) {
    bytes content = {room, 0};
    if (from->wire == 0) {
        append_length(&content, corner_number(source));
        return content;
    }
    append(&content, from->content.data, from->content.size);
    if (from->wire != 2 || (content.size != 0 && random_between(source, 0, 3) != 0)) {
        replace(source, content);
        return content;
    }
    if (random_between(source, 0, 1) == 0 && content.size != 0) {
        content.size = place(source, content.size); /* shorter */
    } else {
        size_t more = content.size < 8 ? content.size : 8;
        append(&content, from->content.data, more); /* longer */
    }
    return content;
}

/* Drops, doubles or changes one field, or gives it the content of another. */
static bytes edit_field(random_source *source, bytes sound) {
    static field fields[MOST_FIELDS];
    int count = 0;
    list_fields(sound, 0, fields, &count);
    const field *target = &fields[place(source, (size_t)count)];
    uint8_t *room = malloc(target->content.size + 32);
    edit edit = {target->content.data, 1, target->content, 3 * sound.size + 4096};
    int64_t kind = random_between(source, 0, 7);
    if (kind < 2)
        edit.copies = kind == 0 ? 0 : 2;
    for (int tries = 0; kind == 2 && tries < 20; tries++) {
        const field *other = &fields[place(source, (size_t)count)];
        if (other->wire == target->wire)
            edit.content = other->content;
    }
    if (kind > 2)
        edit.content = other_content(source, target, room);
    bytes version = {malloc(edit.room), 0};
    write_edited(sound, &edit, &version);
    free(room);
    return version;
}

/* Version `number` of a sound file, in memory of just its size, so that a sanitizer sees a step
 * past the end. */
static bytes make_version(bytes sound, int number) {
    random_source source = {(uint64_t)number * UINT64_C(0x9e3779b97f4a7c15) + sound.size};
    int kind = number % 16;
    bytes version = sound;
    if (kind < 2)
        version.size = place(&source, sound.size);
    else if (kind >= 6)
        version = edit_field(&source, sound);
    bytes exact = {malloc(version.size + (version.size == 0)), version.size};
    memcpy(exact.data, version.data, version.size);
    if (version.data != sound.data)
        free(version.data);
    if (kind == 2 || kind == 3)
        flip(&source, exact);
    else if (kind == 4)
        replace(&source, exact);
    else if (kind == 5)
        splice(&source, exact);
    return exact;
}

/* ---- inputs ---- */

/* Numbers that all dtypes have and most operators can work on; shapes and indices stay small. */
static sb_status random_tensor(random_source *source, const sb_value_description *description, sb_value *value,
                               sb_error *error) {
    int64_t dims[SB_MAX_RANK];
    int rank = description->rank < 0 ? 2 : description->rank;
    for (int d = 0; d < rank; d++)
        dims[d] = description->rank < 0 || description->dims[d] < 0 ? 3 : description->dims[d];
    sb_tensor *tensor;
    sb_status status = sb_tensor_create(description->dtype, rank, dims, &tensor, error);
    if (status != SB_OK)
        return status;
    *value = sb_value_of_tensor(tensor);
    if (description->dtype == SB_STRING)
        return SB_OK;
    size_t size = sb_dtype_size(description->dtype);
    uint8_t *data = sb_tensor_mutable_data(tensor);
    for (int64_t i = 0; i < sb_tensor_elements(tensor); i++) {
        float number = (float)random_between(source, -2, 5);
        if (description->dtype == SB_F32)
            memcpy(data + (size_t)i * size, &number, sizeof number);
        else
            data[(size_t)i * size] = (uint8_t)random_between(source, 0, 3);
    }
    return SB_OK;
}

/* The recorded input where it is of the kind that the version takes, else one of small numbers. */
static sb_status find_input(const char *path, const sb_value_description *description, int index, random_source *source,
                            sb_value *value, sb_error *error) {
    char file[1200];
    const char *end = strrchr(path, '/');
    snprintf(file, sizeof file, "%.*s/test_data_set_0/input_%d.pb", (int)(end - path), path, index);
    if (random_between(source, 0, 3) != 0 && sb_onnx_value_load(file, description, value, error) == SB_OK)
        return SB_OK;
    if (description->kind == SB_KIND_SEQUENCE)
        return sb_value_of_sequence(description->dtype, 0, NULL, value, error);
    if (description->kind != SB_KIND_TENSOR)
        return SB_OK;
    return random_tensor(source, description, value, error);
}

/* ---- one version ---- */

static bool check_report(sb_status status, const sb_error *error) {
    if (status == SB_ERROR_INTERNAL)
        fault("a defect", error->message);
    else if (error->status != status || error->message[0] == '\0')
        fault("a failure without a report", sb_status_name(status));
    return status == SB_OK;
}

static sb_status run_model(const char *path, sb_model *model, int number, sb_error *error) {
    int inputs = sb_model_input_count(model), outputs = sb_model_output_count(model);
    sb_value *values = calloc((size_t)(inputs + outputs) + 1, sizeof *values);
    random_source source = {(uint64_t)number};
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    sb_session *session = NULL;
    options.threads = 1;
    options.iteration_limit = ITERATIONS;
    options.memory_limit = RUN_BYTES;
    sb_status status = SB_OK;
    /* A version may ask for inputs that fit no memory: that is its failure, too. */
    sb_memory_budget *budget = sb_memory_budget_create(RUN_BYTES);
    sb_memory_budget_enter(budget);
    for (int i = 0; i < inputs && status == SB_OK; i++)
        status = find_input(path, sb_model_input(model, i), i, &source, &values[i], error);
    sb_memory_budget_enter(NULL);
    sb_memory_budget_release(budget);
    if (status == SB_OK)
        status = sb_session_create(model, &options, &session, error);
    if (status == SB_OK)
        status = sb_session_run(session, values, values + inputs, error);
    sb_session_destroy(session);
    for (int i = 0; i < inputs + outputs; i++)
        sb_value_release(&values[i]);
    free(values);
    return status;
}

static void try_version(const char *path, bytes sound, int number) {
    bytes version = make_version(sound, number);
    int64_t before = sb_allocation_count().live_blocks;
    sb_model_options options = SB_MODEL_OPTIONS_DEFAULT;
    sb_model *model = NULL;
    sb_error error = {SB_OK, ""};
    options.passes = number % 3 != 0;
    options.reference_only = number % 5 == 0;
    options.memory_limit = LOAD_BYTES;
    sb_status status = sb_model_load_memory(version.data, version.size, &options, &model, &error);
    free(version.data);
    if (status != SB_OK) {
        check_report(status, &error);
        atomic_fetch_add(&shared->refused, 1);
    } else {
        status = run_model(path, model, number, &error);
        if (status != SB_OK)
            check_report(status, &error);
        atomic_fetch_add(status == SB_OK ? &shared->ran : &shared->failed, 1);
    }
    sb_model_release(model);
    if (sb_allocation_count().live_blocks != before)
        fault("a leak", "");
}

static void work(int first_model, int first_version, int begin, int end) {
    for (int m = first_model; m < path_count; m++) {
        bytes sound = read_file(paths[m]);
        for (int v = m == first_model ? first_version : begin; v < end && sound.size != 0; v++) {
            atomic_store(&shared->version, v);
            atomic_store(&shared->model, m);
            double start = seconds();
            try_version(paths[m], sound, v);
            int took = (int)(1000 * (seconds() - start));
            if (took > shared->slowest_ms) {
                shared->slowest_ms = took;
                shared->slowest_model = m;
                shared->slowest_version = v;
            }
        }
        free(sound.data);
    }
}

/* ---- the parent ---- */

/* Waits for the child; false when it crashed or hung, which is reported. */
static bool supervise(pid_t child) {
    int at = -1, status;
    double since = seconds();
    for (;;) {
        if (waitpid(child, &status, WNOHANG) == child)
            break;
        int now = shared->model * 10000 + shared->version;
        if (now != at) {
            at = now;
            since = seconds();
        } else if (seconds() - since > PATIENCE_SECONDS) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            fault("hangs", "");
            return false;
        }
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    char text[64];
    snprintf(text, sizeof text, WIFSIGNALED(status) ? "signal %d" : "exit status %d",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    fault("crashes", text);
    return false;
}

int main(int argc, char **argv) {
    if (argc < 3 || argc > 5) {
        fprintf(stderr, "usage: mutations DATA COUNT [MODEL [FIRST]]\n");
        return 2;
    }
    wanted = argc > 3 ? argv[3] : "";
    int begin = argc > 4 ? atoi(argv[4]) : 0, end = begin + atoi(argv[2]);
    nftw(argv[1], note_path, 16, FTW_PHYS);
    qsort(paths, (size_t)path_count, sizeof *paths, compare_paths);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (path_count == 0 || shared == MAP_FAILED)
        return 2;
    int model = 0, version = begin;
    while (model < path_count && shared->faults < MOST_FAULTS) {
        shared->model = model;
        shared->version = version;
        fflush(NULL);
        pid_t child = fork();
        if (child < 0)
            return 2;
        if (child == 0) {
            work(model, version, begin, end);
            exit(0);
        }
        if (supervise(child))
            break;
        version = shared->version + 1;
        model = shared->model + (version >= end);
        version = version >= end ? begin : version;
    }
    printf("%d models, %d versions refused, %d failed in a run, %d ran; slowest %d ms: %s, version "
           "%d; %d faults\n",
           path_count, shared->refused, shared->failed, shared->ran, shared->slowest_ms, paths[shared->slowest_model],
           shared->slowest_version, shared->faults);
    for (int i = 0; i < path_count; i++)
        free(paths[i]);
    return shared->faults != 0;
}
