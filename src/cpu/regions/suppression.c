/* The kernel of NonMaxSuppression. Candidates are sorted by their bits, and each is compared with the kept boxes a block at a time:
 * 27,000 candidates of a detector of random weights took 559 ms by the definition, which works out the corners of both for each pair. */
#include "cpu/regions/suppression.h"

#include <stdlib.h>

#include "cpu/regions/kept_boxes.h"
#include "ops/regions.h"

typedef struct scored {
    uint32_t key, index; /* by falling score the keys rise */
} scored;

/* For a box. */
#define SCRATCH_BYTES (2 * sizeof(scored) + 5 * sizeof(float))

bool sb_suppression_supports(const sb_kernel_query *query, char *why) {
    (void)query;
    (void)why;
    return true;
}

static int64_t gather_candidates(const sb_suppression *work, const float *scores, scored *candidates) {
    int64_t count = 0;
    for (int64_t i = 0; i < work->boxes; i++) {
        if (!work->has_least || scores[i] > work->least_score)
            candidates[count++] =
                (scored){~((uint32_t)sb_bits_order_f32(scores[i]) ^ UINT32_C(0x80000000)), (uint32_t)i};
    }
    return count;
}

/* Digit by digit from the lowest, which keeps those of one key in the order of their indices. Four digits: the result is where the
 * candidates were. */
static void sort_candidates(scored *candidates, scored *other, int64_t count) {
    for (int shift = 0; shift < 32; shift += 8) {
        int64_t begins[257] = {0};
        for (int64_t i = 0; i < count; i++)
            begins[(candidates[i].key >> shift & 255) + 1]++;
        for (int d = 0; d < 256; d++)
            begins[d + 1] += begins[d];
        for (int64_t i = 0; i < count; i++)
            other[begins[candidates[i].key >> shift & 255]++] = candidates[i];
        scored *swap = candidates;
        candidates = other;
        other = swap;
    }
}

static bool is_number(sb_region_corners box) {
    return box.top == box.top && box.left == box.left && box.bottom == box.bottom && box.right == box.right;
}

/* One more box; one with NaN overlaps none, and is kept as nothing: its area is not above 0. */
static void keep(sb_kept_boxes *kept, sb_region_corners box) {
    int64_t at = kept->count++;
    if (at % SB_KEPT_BLOCK == 0) {
        for (int64_t i = at; i < at + SB_KEPT_BLOCK; i++)
            kept->top[i] = kept->left[i] = kept->bottom[i] = kept->right[i] = kept->area[i] = 0.0f;
    }
    if (!is_number(box))
        return;
    kept->top[at] = box.top;
    kept->left[at] = box.left;
    kept->bottom[at] = box.bottom;
    kept->right[at] = box.right;
    kept->area[at] = (box.right - box.left) * (box.bottom - box.top);
}

static int64_t choose(const sb_suppression *work, const float *boxes, const float *scores, void *scratch,
                      int64_t *chosen, sb_kept_overlap *overlaps) {
    const int64_t room = work->boxes + SB_SUPPRESSION_MORE;
    scored *candidates = scratch, *other = candidates + room;
    float *corners = (float *)(void *)(other + room);
    sb_kept_boxes kept = {.top = corners,
                          .left = corners + room,
                          .bottom = corners + 2 * room,
                          .right = corners + 3 * room,
                          .area = corners + 4 * room};
    int64_t count = gather_candidates(work, scores, candidates);
    sort_candidates(candidates, other, count);
    for (int64_t i = 0; i < count && kept.count < work->most; i++) {
        sb_region_corners box = sb_region_box_corners(boxes + (int64_t)candidates[i].index * 4, work->centred);
        if (is_number(box) && overlaps(&kept, box, work->overlap))
            continue;
        chosen[kept.count] = candidates[i].index;
        keep(&kept, box);
    }
    return kept.count;
}

static int64_t choose_scalar(const sb_suppression *work, const float *boxes, const float *scores, void *scratch,
                             int64_t *chosen) {
    return choose(work, boxes, scores, scratch, chosen, sb_kept_overlap_scalar);
}

#if SB_HAS_X86_KERNELS
static int64_t choose_avx2(const sb_suppression *work, const float *boxes, const float *scores, void *scratch,
                           int64_t *chosen) {
    return choose(work, boxes, scores, scratch, chosen, sb_kept_overlap_avx2);
}

static int64_t choose_avx512(const sb_suppression *work, const float *boxes, const float *scores, void *scratch,
                             int64_t *chosen) {
    return choose(work, boxes, scores, scratch, chosen, sb_kept_overlap_avx512);
}
#endif

static sb_suppression_choose *choose_for(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512)
        return choose_avx512;
    if (isa == SB_ISA_AVX2)
        return choose_avx2;
#endif
    (void)isa;
    return choose_scalar;
}

sb_status sb_suppression_launch(sb_call *call) {
    const sb_tensor *boxes = sb_call_input(call, 0);
    if (boxes->rank == 3 && boxes->dims[1] > UINT32_MAX)
        return call->node->op->eval(call);
    return sb_suppression_run(call, SCRATCH_BYTES, choose_for(call->isa));
}
