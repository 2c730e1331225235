/* Any bytes as the file of a state: every one is refused with a report and changes nothing, or restored.
 *
 * The first byte says what is put right before: 1, the digest of the model; 2, the digest of the file at its end; 4,
 * it is read as slot 1. */
#include <stdlib.h>
#include <string.h>

#include <samebit/builder.h>

#include "base/allocation.h"
#include "fuzz/fuzz.h"
#include "runtime/model_digest.h"
#include "runtime/state.h"

#define DIGEST_AT 16

/* v, f32 [2,3] with slots, and flags, bool [4]; a run negates both. */
static sb_status build(sb_builder *b, sb_error *error) {
    static const char *const names[] = {"v", "flags"}, *const ops[] = {"Neg", "Not"};
    static const int64_t dims[2][2] = {{2, 3}, {4}};
    sb_variable_options options = SB_VARIABLE_OPTIONS_DEFAULT;
    for (int i = 0; i < 2; i++) {
        sb_value_description description = {.name = names[i],
                                            .kind = SB_KIND_TENSOR,
                                            .dtype = i == 0 ? SB_F32 : SB_BOOL,
                                            .rank = 2 - i,
                                            .dims = dims[i]};
        sb_builder_variable variable;
        sb_builder_value before, after;
        options.slots = i == 0;
        SB_TRY(sb_builder_add_variable(b, &description, NULL, &options, &variable, error));
        SB_TRY(sb_builder_read(b, variable, &before, error));
        SB_TRY(sb_builder_op(b, ops[i], 1, &before, 0, NULL, &after, error));
        SB_TRY(sb_builder_update(b, variable, after, error));
    }
    return SB_OK;
}

static sb_model *model;

static void release_model(void) {
    sb_model_release(model);
}

static sb_model *the_model(void) {
    sb_builder *b;
    if (model != NULL)
        return model;
    FUZZ_CHECK(sb_builder_create(&b, NULL) == SB_OK && build(b, NULL) == SB_OK &&
               sb_builder_build(b, NULL, &model, NULL) == SB_OK);
    sb_builder_destroy(b);
    atexit(release_model);
    return model;
}

/* The file that is meant: without the first byte, and with the digests that it asks for. */
static void put_right(uint8_t flags, unsigned char *bytes, size_t size) {
    sb_digest digest;
    if ((flags & 1) != 0 && size >= DIGEST_AT + SB_DIGEST_BYTES)
        FUZZ_CHECK(sb_model_digest(model, bytes + DIGEST_AT, NULL) == SB_OK);
    if ((flags & 2) == 0 || size < SB_DIGEST_BYTES)
        return;
    FUZZ_CHECK(sb_digest_begin(&digest, NULL) == SB_OK);
    sb_digest_add_bytes(&digest, bytes, size - SB_DIGEST_BYTES);
    FUZZ_CHECK(sb_digest_end(&digest, bytes + size - SB_DIGEST_BYTES, NULL) == SB_OK);
}

/* Contents and versions in a row. */
static void look(sb_state *state, unsigned char *all) {
    for (int i = 0; i < sb_state_variable_count(state); i++) {
        const sb_held_variable *held = &state->variables[i];
        size_t bytes = (size_t)sb_tensor_elements(held->tensor) * sb_dtype_size(held->tensor->dtype);
        memcpy(all, held->tensor->data, bytes);
        memcpy(all + bytes, &held->version, sizeof held->version);
        all += bytes + sizeof held->version;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sb_state *state;
    sb_error error = {0};
    unsigned char before[64] = {0}, after[64] = {0};
    uint8_t flags = size > 0 ? data[0] : 0;
    FUZZ_CHECK(the_model() != NULL);
    int64_t blocks = sb_allocation_count().live_blocks;
    FUZZ_CHECK(sb_state_create(model, NULL, &state, NULL) == SB_OK);
    unsigned char *bytes = sb_allocate(size);
    FUZZ_CHECK(bytes != NULL);
    size_t file = size > 0 ? size - 1 : 0;
    if (file != 0)
        memcpy(bytes, data + 1, file);
    put_right(flags, bytes, file);
    look(state, before);
    sb_status status = sb_state_restore_memory(state, (flags & 4) != 0 ? 1 : SB_ALL_SLOTS, bytes, file, "file", &error);
    look(state, after);
    FUZZ_CHECK(status == SB_OK || (error.status == status && error.message[0] != '\0'));
    FUZZ_CHECK(status != SB_ERROR_INTERNAL && status != SB_ERROR_OUT_OF_MEMORY);
    FUZZ_CHECK(status == SB_OK || memcmp(before, after, sizeof before) == 0);
    for (int i = 0; i < 4; i++) /* a bool is one or the other */
        FUZZ_CHECK(((const unsigned char *)state->variables[1].tensor->data)[i] <= 1);
    sb_free(bytes);
    sb_state_release(state);
    FUZZ_CHECK(sb_allocation_count().live_blocks == blocks);
    return 0;
}
