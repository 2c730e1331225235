/* Whether a box overlaps any of those kept, compiled once per instruction set. Lanes are kept boxes. The first question, whether a
 * block has any box that touches at all, takes a third of the operations, and most blocks need no other.
 *
 * Without NaN the smaller and the larger of two numbers are the contract's but for the sign of a zero, which no difference that is
 * above 0 depends on. */
#include "cpu/regions/kept_boxes.h"

static inline float smaller(float a, float b) {
    return a < b ? a : b;
}

static inline float larger(float a, float b) {
    return a > b ? a : b;
}

static inline bool touches(const sb_kept_boxes *kept, int64_t first, sb_region_corners box) {
    const float *top = kept->top + first, *left = kept->left + first;
    const float *bottom = kept->bottom + first, *right = kept->right + first;
    int any = 0;
    for (int i = 0; i < SB_KEPT_BLOCK; i++) {
        float width = smaller(right[i], box.right) - larger(left[i], box.left);
        float height = smaller(bottom[i], box.bottom) - larger(top[i], box.top);
        any |= (width > 0.0f) & (height > 0.0f);
    }
    return any != 0;
}

static inline bool overlaps(const sb_kept_boxes *kept, int64_t first, sb_region_corners box, float area,
                            float threshold) {
    const float *top = kept->top + first, *left = kept->left + first, *areas = kept->area + first;
    const float *bottom = kept->bottom + first, *right = kept->right + first;
    int any = 0;
    for (int i = 0; i < SB_KEPT_BLOCK; i++) {
        float width = smaller(right[i], box.right) - larger(left[i], box.left);
        float height = smaller(bottom[i], box.bottom) - larger(top[i], box.top);
        float both = width * height, either = area + areas[i] - both;
        any |= (width > 0.0f) & (height > 0.0f) & (areas[i] > 0.0f) & (either > 0.0f) & (both / either > threshold);
    }
    return any != 0;
}

bool SB_ISA_NAME(sb_kept_overlap)(const sb_kept_boxes *kept, sb_region_corners box, float threshold) {
    float area = (box.right - box.left) * (box.bottom - box.top);
    if (!(area > 0.0f))
        return false;
    for (int64_t first = 0; first < kept->count; first += SB_KEPT_BLOCK) {
        if (touches(kept, first, box) && overlaps(kept, first, box, area, threshold))
            return true;
    }
    return false;
}
