#include "harness/cpu_raw.h"

#include "base/allocation.h"

int machine_kernels(const sb_gemm_kernels *kernels[3]) {
    static const sb_isa isas[] = {SB_ISA_SCALAR, SB_ISA_AVX2, SB_ISA_AVX512};
    int count = 0;
    for (int i = 0; i < 3; i++) {
        sb_isa isa;
        if (sb_isa_resolve(isas[i], &isa, NULL) == SB_OK)
            kernels[count++] = sb_gemm_f32_kernels(isa);
    }
    return count;
}

sb_tensor *random_floats(harness *h, distribution kind, int64_t count) {
    return packed_tensor(h, kind, SB_F32, 1, &count);
}

void *raw_block(size_t bytes) {
    void *block = sb_allocate(bytes);
    assert_non_null(block);
    memset(block, 0xa5, bytes);
    return block;
}

float *floats_of(const sb_tensor *tensor) {
    return (float *)(void *)tensor->data;
}

sb_tensor *copy_floats(const sb_tensor *tensor) {
    sb_tensor *copy = NULL;
    MUST(sb_tensor_create(tensor->dtype, tensor->rank, tensor->dims, &copy, error));
    sb_tensor_copy_elements(copy, tensor);
    return copy;
}

sb_tensor *view_floats(const sb_tensor *packed, int rank, const int64_t *dims, const int64_t *strides) {
    sb_tensor *view = NULL;
    MUST(sb_tensor_over(packed->storage, packed->data, packed->dtype, rank, dims, strides, &view, error));
    return view;
}

void scale_by_position(void *context, float *row, int64_t m, int64_t n, int64_t count) {
    const float factor = *(const float *)context;
    for (int64_t i = 0; i < count; i++)
        row[i] = row[i] * factor + (float)(m * 3 + (n + i));
}

sb_epilogue random_epilogue(harness *h, distribution kind, int64_t m, int64_t n, sb_tensor **operands) {
    static float factor = 0.75f;
    random_source *random = &h->random;
    const int64_t longest = m > n ? m : n, matrix = m * n * 2;
    *operands = random_floats(h, kind, 2 * longest + matrix + 3);
    const float *vectors = floats_of(*operands);
    sb_epilogue epilogue = {.count = (int)random_between(random, 0, 4)};
    for (int s = 0; s < epilogue.count; s++) {
        sb_epilogue_step *step = &epilogue.steps[s];
        *step = (sb_epilogue_step){.kind = (sb_epilogue_kind)random_between(random, 0, SB_EPILOGUE_CALL),
                                   .vector = vectors,
                                   .shift = vectors + longest,
                                   .scalar = vectors[2 * longest + matrix + random_between(random, 0, 2)],
                                   .high = vectors[2 * longest + matrix + random_between(random, 0, 2)],
                                   .factor = vectors[2 * longest + matrix + random_between(random, 0, 2)],
                                   .addend = vectors[2 * longest + matrix + random_between(random, 0, 2)],
                                   .call = scale_by_position,
                                   .context = &factor};
        if (step->kind == SB_EPILOGUE_ADD_MATRIX)
            step->scalar = random_between(random, 0, 1) == 0 ? 1.0f : -1.0f;
        if (step->kind == SB_EPILOGUE_ADD_MATRIX || step->kind == SB_EPILOGUE_MUL_MATRIX) {
            step->vector = vectors + 2 * longest;
            step->column_stride = random_between(random, 1, 2);
            step->row_stride = n * step->column_stride;
        }
    }
    return epilogue;
}

const char *epilogue_text(const sb_epilogue *epilogue, char text[64]) {
    int used = 0;
    text[0] = '\0';
    for (int s = 0; s < epilogue->count; s++)
        used += snprintf(text + used, 64 - (size_t)used, " %d", (int)epilogue->steps[s].kind);
    return text;
}
