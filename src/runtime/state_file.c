/* States in files.
 *
 * All numbers are little-endian. A file is
 *     8 bytes   "samestat"
 *     u32       version of the format: 2 (in 1 the SHA-256 was of the model behind the passes)
 *     u32       version of the numerics (docs/numerics.md)
 *     32 bytes  SHA-256 of the model (runtime/model_digest.h)
 *     u32       1 for a slot, 0 for a whole state
 *     u32       number of variables (of a slot: of those with slots)
 * and for each variable, in the state's order,
 *     u32       bytes of its name, and these bytes
 *     u32       dtype, u32 rank, and rank times i64: extents (of a slot: 1 for the axis of slots; where there is a
 *               capacity, what is used of it)
 *     i64       its version (of a slot: that of its variable when it was saved)
 *     u64       bytes of the elements, and these bytes, row-major
 * At the end stand 32 bytes: the SHA-256 of everything before. */
#include <stdio.h>
#include <string.h>

#include <samebit/version.h>

#include "base/allocation.h"
#include "base/file.h"
#include "runtime/model_digest.h"
#include "runtime/state.h"

#define FORMAT_VERSION 2
#define MAGIC "samestat"
#define MAGIC_BYTES 8

static bool is_saved(const sb_held_variable *held, int64_t slot) {
    return slot == SB_ALL_SLOTS || held->slot_axis >= 0;
}

static sb_status saved_view(const sb_held_variable *held, int64_t slot, sb_tensor **view, sb_error *error) {
    if (slot != SB_ALL_SLOTS)
        return sb_state_slot_view(held, slot, view, error);
    *view = sb_tensor_retain(held->tensor);
    return SB_OK;
}

/* ---- writing ---- */

/* A file in memory: descriptions in one growing block, elements where they are. */
typedef struct writer {
    size_t bytes, capacity;
    char *text;
    size_t count;
    size_t *begins;       /* by variable: where its description begins in `text` */
    sb_tensor **contents; /* by variable: on the host, contiguous */
    bool failed;          /* memory has run out */
} writer;

static void put(writer *writer, const void *bytes, size_t count) {
    writer->failed = writer->failed || !sb_grow((void **)&writer->text, &writer->capacity, writer->bytes + count, 1);
    if (writer->failed)
        return;
    memcpy(writer->text + writer->bytes, bytes, count);
    writer->bytes += count;
}

static void put_number(writer *writer, uint64_t value, size_t size) {
    unsigned char bytes[8];
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
    put(writer, bytes, size);
}

static void put_variable(writer *writer, const sb_held_variable *held, const sb_tensor *contents) {
    size_t name = strlen(held->name);
    put_number(writer, name, 4);
    put(writer, held->name, name);
    put_number(writer, (uint64_t)contents->dtype, 4);
    put_number(writer, (uint64_t)contents->rank, 4);
    for (int d = 0; d < contents->rank; d++)
        put_number(writer, (uint64_t)contents->dims[d], 8);
    put_number(writer, (uint64_t)held->version, 8);
    put_number(writer, (uint64_t)sb_tensor_elements(contents) * sb_dtype_size(contents->dtype), 8);
}

static sb_status read_contents(sb_state *state, const sb_held_variable *held, int64_t slot, sb_tensor **contents,
                               sb_error *error) {
    sb_tensor *view;
    SB_TRY(saved_view(held, slot, &view, error));
    sb_status status = sb_state_read(state, view, contents, error);
    sb_tensor_release(view);
    return status;
}

/* Descriptions and contents of what is saved. (Entered.) */
static sb_status collect(sb_state *state, int64_t slot, writer *writer, sb_error *error) {
    unsigned char model[SB_DIGEST_BYTES];
    size_t count = 0;
    SB_TRY(sb_model_digest(state->model, model, error));
    for (size_t i = 0; i < state->count; i++)
        count += is_saved(&state->variables[i], slot);
    put(writer, MAGIC, MAGIC_BYTES);
    put_number(writer, FORMAT_VERSION, 4);
    put_number(writer, (uint64_t)sb_numerics_version(), 4);
    put(writer, model, sizeof model);
    put_number(writer, slot != SB_ALL_SLOTS, 4);
    put_number(writer, count, 4);
    for (size_t i = 0; i < state->count; i++) {
        const sb_held_variable *held = &state->variables[i];
        if (!is_saved(held, slot))
            continue;
        SB_TRY(read_contents(state, held, slot, &writer->contents[writer->count], error));
        writer->begins[writer->count] = writer->bytes;
        put_variable(writer, held, writer->contents[writer->count]);
        writer->count++;
    }
    writer->begins[writer->count] = writer->bytes;
    return writer->failed ? sb_fail_memory(error, writer->bytes) : SB_OK;
}

/* Head, then for each variable its description and its elements, then the digest of all of them. */
static sb_status write_parts(const writer *writer, sb_file_part *parts, const char *path, sb_error *error) {
    unsigned char sum[SB_DIGEST_BYTES];
    sb_digest digest;
    int count = 0;
    parts[count++] = (sb_file_part){writer->text, writer->begins[0]};
    for (size_t i = 0; i < writer->count; i++) {
        const sb_tensor *contents = writer->contents[i];
        parts[count++] = (sb_file_part){writer->text + writer->begins[i], writer->begins[i + 1] - writer->begins[i]};
        parts[count++] =
            (sb_file_part){contents->data, (size_t)sb_tensor_elements(contents) * sb_dtype_size(contents->dtype)};
    }
    SB_TRY(sb_digest_begin(&digest, error));
    for (int i = 0; i < count; i++)
        sb_digest_add_bytes(&digest, parts[i].bytes, parts[i].size);
    SB_TRY(sb_digest_end(&digest, sum, error));
    parts[count++] = (sb_file_part){sum, sizeof sum};
    return sb_file_write_whole(path, count, parts, error);
}

static sb_status save(sb_state *state, int64_t slot, const char *path, sb_error *error) {
    writer writer = {.begins = sb_allocate_array(state->count + 1, sizeof *writer.begins),
                     .contents = sb_allocate_array(state->count, sizeof(sb_tensor *))};
    sb_file_part *parts = sb_allocate_array(2 * state->count + 2, sizeof *parts);
    sb_status status = writer.begins != NULL && writer.contents != NULL && parts != NULL
                           ? SB_OK
                           : sb_fail_memory(error, state->count * sizeof *parts);
    if (status == SB_OK)
        status = sb_state_enter_queue(state, error);
    if (status == SB_OK)
        status = sb_state_leave_queue(state, collect(state, slot, &writer, error), error);
    if (status == SB_OK)
        status = write_parts(&writer, parts, path, error);
    for (size_t i = 0; writer.contents != NULL && i < state->count; i++)
        sb_tensor_release(writer.contents[i]);
    sb_free(writer.contents);
    sb_free(writer.begins);
    sb_free(writer.text);
    sb_free(parts);
    return status;
}

static sb_status enter_and_save(sb_state *state, int64_t slot, const char *path, sb_error *error) {
    SB_TRY(sb_state_enter(state, true, NULL, error));
    sb_status status = save(state, slot, path, error);
    sb_state_leave(state);
    return status;
}

sb_status sb_state_save(sb_state *state, const char *path, sb_error *error) {
    return enter_and_save(state, SB_ALL_SLOTS, path, error);
}

sb_status sb_state_save_slot(sb_state *state, int64_t slot, const char *path, sb_error *error) {
    SB_TRY(sb_state_check_slot(state, slot, error));
    return enter_and_save(state, slot, path, error);
}

/* ---- reading ---- */

/* A file that anybody may have made. */
typedef struct reader {
    const char *name;
    const unsigned char *bytes;
    size_t size, at;
} reader;

static sb_status take(reader *reader, size_t count, const char *what, const unsigned char **bytes, sb_error *error) {
    if (count > reader->size - reader->at)
        return sb_fail(error, SB_ERROR_INVALID_FILE,
                       "%.200s: at byte %zu there are %zu bytes left, and %.200s has %zu: the file was cut short",
                       reader->name, reader->at, reader->size - reader->at, what, count);
    *bytes = reader->bytes + reader->at;
    reader->at += count;
    return SB_OK;
}

static sb_status take_number(reader *reader, size_t size, const char *what, uint64_t *value, sb_error *error) {
    const unsigned char *bytes;
    SB_TRY(take(reader, size, what, &bytes, error));
    *value = 0;
    for (size_t i = 0; i < size; i++)
        *value |= (uint64_t)bytes[i] << (8 * i);
    return SB_OK;
}

/* What comes before the variables. */
static sb_status check_head(reader *reader, sb_state *state, int64_t slot, uint64_t *count, sb_error *error) {
    const unsigned char *bytes;
    unsigned char model[SB_DIGEST_BYTES];
    uint64_t format, numerics, is_slot;
    SB_TRY(take(reader, MAGIC_BYTES, "the head", &bytes, error));
    if (memcmp(bytes, MAGIC, MAGIC_BYTES) != 0)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "%.200s: at byte 0: not the file of a state", reader->name);
    SB_TRY(take_number(reader, 4, "the version of the format", &format, error));
    if (format != FORMAT_VERSION)
        return sb_fail(
            error, SB_ERROR_UNSUPPORTED,
            "%.200s: at byte 8: version %llu of the format, where this library reads version %d: restore it with "
            "the library that saved it",
            reader->name, (unsigned long long)format, FORMAT_VERSION);
    SB_TRY(take_number(reader, 4, "the version of the numerics", &numerics, error));
    if (numerics != (uint64_t)sb_numerics_version())
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "%.200s: at byte 12: made with version %llu of the numerics, and this library has version %d, "
                       "which would go on with other bits: restore it with the library that saved it",
                       reader->name, (unsigned long long)numerics, sb_numerics_version());
    SB_TRY(take(reader, SB_DIGEST_BYTES, "the digest of the model", &bytes, error));
    SB_TRY(sb_model_digest(state->model, model, error));
    if (memcmp(bytes, model, sizeof model) != 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "%.200s: at byte 16: the state of another model: one of other graphs, constants or variables",
                       reader->name);
    SB_TRY(take_number(reader, 4, "the kind", &is_slot, error));
    if (is_slot != (slot != SB_ALL_SLOTS))
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "%.200s: at byte 48: %s", reader->name,
                       is_slot == 0   ? "a whole state, where a slot is to be restored: use sb_state_restore"
                       : is_slot == 1 ? "one slot, where a whole state is to be restored: use sb_state_restore_slot"
                                      : "neither a state nor a slot");
    return take_number(reader, 4, "the number of variables", count, error);
}

/* An extent that has a capacity: the first variable along it says what it is to become. */
static bool settle_extent(const sb_held_extent *extent, int64_t *settled, uint64_t given) {
    if (*settled < 0 && given <= (uint64_t)extent->capacity)
        *settled = (int64_t)given;
    return given == (uint64_t)*settled;
}

/* Name, dtype and extents must be those of the variable, which are `dims`. With `extents`, those that have a capacity are
 * the file's, and put into both. */
static sb_status check_variable(reader *reader, const sb_state *state, const sb_held_variable *held, int64_t *extents,
                                int64_t *dims, sb_error *error) {
    const char *name = held->name;
    const sb_tensor *wanted = held->tensor;
    const unsigned char *bytes;
    uint64_t length, dtype, rank, extent;
    size_t begin = reader->at;
    SB_TRY(take_number(reader, 4, "the length of a name", &length, error));
    SB_TRY(take(reader, (size_t)length, "the name of a variable", &bytes, error));
    if (length != strlen(name) || memcmp(bytes, name, (size_t)length) != 0)
        return sb_fail(error, SB_ERROR_SHAPE,
                       "%.200s: at byte %zu: another variable than %.200s, which the state has next", reader->name,
                       begin, name);
    SB_TRY(take_number(reader, 4, "a dtype", &dtype, error));
    SB_TRY(take_number(reader, 4, "a rank", &rank, error));
    bool same = dtype == (uint64_t)wanted->dtype && rank == (uint64_t)wanted->rank;
    for (int d = 0; d < wanted->rank && same; d++) {
        SB_TRY(take_number(reader, 8, "an extent", &extent, error));
        int e = extents != NULL ? held->extents[d] : -1;
        same = e >= 0 ? settle_extent(&state->extents[e], &extents[e], extent) : extent == (uint64_t)dims[d];
        dims[d] = same ? (int64_t)extent : dims[d];
    }
    char text[SB_DIMS_TEXT_BYTES];
    return same ? SB_OK
                : sb_fail(
                      error, SB_ERROR_SHAPE,
                      "%.200s: at byte %zu: variable %.200s has another dtype or other extents than %s%s in the state, "
                      "or more rows than its capacity",
                      reader->name, begin, name, sb_dtype_name(wanted->dtype), sb_dims_text(wanted->rank, dims, text));
}

static sb_status check_bool(const reader *reader, const unsigned char *bytes, size_t count, sb_error *error) {
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] > 1)
            return sb_fail(error, SB_ERROR_INVALID_FILE, "%.200s: at byte %zu: %d is neither true nor false",
                           reader->name, (size_t)(bytes - reader->bytes) + i, bytes[i]);
    }
    return SB_OK;
}

/* The contents of a variable as a tensor: a copy, since those in the file lie at any address. */
static sb_status take_contents(reader *reader, const char *name, sb_dtype dtype, int rank, const int64_t *dims,
                               int64_t *version, sb_tensor **contents, sb_error *error) {
    uint64_t given, size;
    int64_t elements;
    const unsigned char *bytes;
    SB_TRY(take_number(reader, 8, "a version", &given, error));
    if (given > INT64_MAX)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "%.200s: at byte %zu: a version below 0", reader->name,
                       reader->at - 8);
    SB_TRY(sb_count_elements(dtype, rank, dims, &elements, error));
    size_t needed = (size_t)elements * sb_dtype_size(dtype);
    SB_TRY(take_number(reader, 8, "a size", &size, error));
    if (size != needed)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "%.200s: at byte %zu: %llu bytes of elements where %zu are needed",
                       reader->name, reader->at - 8, (unsigned long long)size, needed);
    SB_TRY(take(reader, needed, name, &bytes, error));
    if (dtype == SB_BOOL)
        SB_TRY(check_bool(reader, bytes, needed, error));
    *version = (int64_t)given;
    return sb_tensor_from_data(dtype, rank, dims, bytes, contents, error);
}

static sb_status read_variable(reader *reader, sb_state *state, int64_t slot, size_t index, sb_state_writes *writes,
                               sb_error *error) {
    const sb_held_variable *held = &state->variables[index];
    sb_tensor *contents;
    int64_t version, dims[SB_MAX_RANK];
    memcpy(dims, held->tensor->dims, sizeof dims);
    if (slot != SB_ALL_SLOTS)
        dims[held->slot_axis] = 1;
    SB_TRY(check_variable(reader, state, held, slot == SB_ALL_SLOTS ? writes->extents : NULL, dims, error));
    SB_TRY(
        take_contents(reader, held->name, held->tensor->dtype, held->tensor->rank, dims, &version, &contents, error));
    sb_status status = sb_state_writes_add(state, writes, index, slot, contents,
                                           slot == SB_ALL_SLOTS ? version : held->version + 1, error);
    sb_tensor_release(contents);
    return status;
}

static sb_status check_sum(reader *reader, sb_error *error) {
    unsigned char sum[SB_DIGEST_BYTES];
    const unsigned char *bytes;
    size_t end = reader->at;
    sb_digest digest;
    SB_TRY(take(reader, SB_DIGEST_BYTES, "the digest of the file", &bytes, error));
    if (reader->at != reader->size)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "%.200s: at byte %zu: %zu bytes too many", reader->name,
                       reader->at, reader->size - reader->at);
    SB_TRY(sb_digest_begin(&digest, error));
    sb_digest_add_bytes(&digest, reader->bytes, end);
    SB_TRY(sb_digest_end(&digest, sum, error));
    if (memcmp(sum, bytes, sizeof sum) == 0)
        return SB_OK;
    return sb_fail(error, SB_ERROR_INVALID_FILE,
                   "%.200s: at byte %zu: the digest of the bytes before is another: the file is damaged", reader->name,
                   end);
}

/* Reads the whole file before anything changes. (Entered.) */
static sb_status restore(reader *reader, sb_state *state, int64_t slot, sb_state_writes *writes, sb_error *error) {
    uint64_t count, saved = 0;
    SB_TRY(sb_state_writes_create(state, writes, error));
    for (size_t e = 0; e < state->extent_count && slot == SB_ALL_SLOTS; e++)
        writes->extents[e] = -1;
    SB_TRY(check_head(reader, state, slot, &count, error));
    for (size_t i = 0; i < state->count; i++)
        saved += is_saved(&state->variables[i], slot);
    if (count != saved)
        return sb_fail(error, SB_ERROR_SHAPE, "%.200s: at byte 52: %llu variables, where the state has %llu",
                       reader->name, (unsigned long long)count, (unsigned long long)saved);
    for (size_t i = 0; i < state->count; i++) {
        if (is_saved(&state->variables[i], slot))
            SB_TRY(read_variable(reader, state, slot, i, writes, error));
    }
    SB_TRY(check_sum(reader, error));
    for (size_t e = 0; e < state->extent_count; e++)
        writes->extents[e] = writes->extents[e] < 0 ? state->extents[e].used : writes->extents[e];
    SB_TRY(sb_state_writes_apply(state, writes, error));
    if (slot == SB_ALL_SLOTS)
        sb_state_set_torn(state, NULL);
    return SB_OK;
}

sb_status sb_state_restore_memory(sb_state *state, int64_t slot, const void *bytes, size_t size, const char *name,
                                  sb_error *error) {
    reader reader = {name, bytes, size, 0};
    sb_state_writes writes = {0};
    SB_TRY(sb_state_enter(state, slot != SB_ALL_SLOTS, NULL, error));
    sb_status status = sb_state_enter_queue(state, error);
    if (status == SB_OK)
        status = sb_state_leave_queue(state, restore(&reader, state, slot, &writes, error), error);
    sb_state_writes_clear(&writes);
    sb_state_leave(state);
    return status;
}

static sb_status restore_file(sb_state *state, int64_t slot, const char *path, sb_error *error) {
    sb_mapping mapping;
    SB_TRY(sb_file_map(path, &mapping, error));
    sb_status status = sb_state_restore_memory(state, slot, mapping.bytes, mapping.size, path, error);
    sb_file_unmap(&mapping);
    return status;
}

sb_status sb_state_restore(sb_state *state, const char *path, sb_error *error) {
    return restore_file(state, SB_ALL_SLOTS, path, error);
}

sb_status sb_state_restore_slot(sb_state *state, int64_t slot, const char *path, sb_error *error) {
    SB_TRY(sb_state_check_slot(state, slot, error));
    return restore_file(state, slot, path, error);
}
