/* Comparing tensors: bit for bit, and how far apart. */
#ifndef SAMEBIT_COMPARE_H
#define SAMEBIT_COMPARE_H

#include <samebit/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How two tensors of one dtype and shape differ. */
typedef struct sb_comparison {
    int64_t elements;
    int64_t different; /**< elements whose bits differ (any NaN equals any NaN, +0 and -0 differ) */
    int64_t outside;   /**< elements with |left - right| > absolute + relative × |right|, or only one NaN */
    int64_t worst;     /**< row-major index of the element that is farthest off; -1 when none differs */
    double worst_left; /**< its value on the left; for text 0 */
    double worst_right;
    double worst_error;  /**< |left - right| there; infinite when one is NaN or the infinities differ */
    uint64_t worst_ulps; /**< representable numbers from one to the other; UINT64_MAX with a NaN */
    double max_relative; /**< largest |left - right| / |right| over elements with right ≠ 0 */
} sb_comparison;

/** Compares two tensors element by element. `right` is the reference. Errors: SHAPE when dtypes or shapes differ;
 * INVALID_ARGUMENT for tensors on a device. */
SB_API SB_MUST_CHECK sb_status sb_tensor_compare(const sb_tensor *left, const sb_tensor *right, double absolute,
                                                 double relative, sb_comparison *comparison, sb_error *error);

#ifdef __cplusplus
}
#endif
#endif
