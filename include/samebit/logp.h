/* Log-probabilities of chosen tokens from hidden states and the weights of a language model's head, forward and
 * backward, without ever holding all logits.
 *
 *     logp[m] = log softmax(inverse_temperature * (hidden · weight)[m])[targets[m]]
 *
 * Logits are the chains of <samebit/gemm.h>, kept in f32; what happens to them is written down to the last bit in
 * docs/numerics.md, section 9. So a row has the same bits alone, in any batch, on the CPU and on any GPU that has the
 * chain, whatever the chunks are in which the vocabulary is worked through.
 *
 * Everything is on the engine's side: memory of its device, or of the process. The caller gives the workspace, so that
 * it comes from the allocator that the rest of a program uses, and calls may be captured in graphs. */
#ifndef SAMEBIT_LOGP_H
#define SAMEBIT_LOGP_H

#include <samebit/gemm.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The most columns that weight can have. */
#define SB_LINEAR_LOGP_MOST_VOCABULARY (INT64_C(1) << 24)

/** What is asked for. Start from SB_LINEAR_LOGP_DEFAULT. M rows, K hidden features, V words.
 *
 * A row whose target is `ignore_index` gives +0. A target that is neither that nor from 0 to V - 1 is
 * INVALID_ARGUMENT on the CPU; on a device, where nobody looks before the kernels do, logp is NaN, and so is the
 * row's gradient. A row is NaN that has a logit which is NaN or not below the bound of section 9 (about 1.45 million,
 * +∞ included), or none above its negative. */
typedef struct sb_linear_logp {
    size_t struct_bytes; /**< sizeof(sb_linear_logp): lets the struct grow */
    sb_matrix hidden;    /**< M × K, SB_BF16 or SB_F16; any strides. batch_stride is not read, here and below */
    /** K × V, hidden's dtype; any strides: of the usual [V, K], row_stride is 1 and column_stride K. */
    sb_matrix weight;
    const int64_t *targets; /**< M */
    int64_t ignore_index;
    float inverse_temperature; /**< from 2^-20 to 2^20 */
    float *logp;               /**< M; the forward pass writes it. The backward pass does not look at it */
    int32_t *maximum;          /**< M, and … */
    /** … M: the sum of exponentials of a row is sum * 2^maximum. What the forward pass leaves for the backward pass;
     * both may be NULL in the forward pass. */
    float *sum;
    void *workspace;        /**< aligned to 256 bytes; its contents mean nothing before and after a call */
    size_t workspace_bytes; /**< at least what sb_linear_logp_workspace says */
    const char *schedule;   /**< of every product: as in sb_gemm */
} sb_linear_logp;

#define SB_LINEAR_LOGP_DEFAULT                                                                                         \
    { .struct_bytes = sizeof(sb_linear_logp), .ignore_index = -100, .inverse_temperature = 1.0f }

/** What the backward pass is asked for besides. Start from SB_LINEAR_LOGP_GRADIENT_DEFAULT. Gradients of logits are
 * rounded to hidden's dtype before they enter the products; rows that are ignored have none, but zeros times
 * infinities are NaN as ever. */
typedef struct sb_linear_logp_gradient {
    size_t struct_bytes; /**< sizeof(sb_linear_logp_gradient): lets the struct grow */
    const float *d_logp; /**< M */
    sb_matrix d_hidden;  /**< M × K, SB_F32 or hidden's dtype: chains over V, rounded once; `data` NULL: not wanted */
    sb_matrix
        d_weight; /**< K × V, SB_F32 or hidden's dtype: chains over the rows, rounded once; `data` NULL: not wanted */
    bool accumulate;        /**< the chains of d_weight, which is SB_F32 then, continue from what it holds */
    const sb_row_map *rows; /**< how M is cut into groups in d_weight, as in sb_gemm; NULL: into 16 from 0 */
} sb_linear_logp_gradient;

#define SB_LINEAR_LOGP_GRADIENT_DEFAULT                                                                                \
    { .struct_bytes = sizeof(sb_linear_logp_gradient) }

/** How many bytes of workspace a call needs: the forward pass, or the backward pass when `gradient` is not NULL.
 * Depends on extents, dtypes and which gradients are wanted; addresses are not looked at, but for whether the
 * gradients' are NULL.
 *
 * The forward pass works on up to 4096 rows at a time, and takes V / 16 bytes for each of these rows and about 32 MiB
 * for a chunk of logits: 73 MB at 4096 × 4096 × 151,936, where all logits in f32 would have 2,490 MB. The backward pass
 * takes 6 bytes for each of M rows (of up to 4096 without d_weight) and about 2^25 / M columns, at least 512: 208 MB
 * there, and 4 bytes for each element of a d_hidden of 16 bits: 67 MB there.
 *
 * Errors: INVALID_ARGUMENT, SHAPE, as the calls would report. */
SB_API SB_MUST_CHECK sb_status sb_linear_logp_workspace(sb_engine *engine, const sb_linear_logp *logp,
                                                        const sb_linear_logp_gradient *gradient, size_t *bytes,
                                                        sb_error *error);

/** Computes logp, and maximum and sum where they are wanted: on the CPU before it returns, on a device in `stream`
 * as sb_gemm_run does. Everything is checked before anything is launched. Errors: INVALID_ARGUMENT, SHAPE,
 * UNSUPPORTED, DEVICE, OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_linear_logp_forward(sb_engine *engine, void *stream, const sb_linear_logp *logp,
                                                      sb_error *error);

/** Computes the gradients of the sum over m of d_logp[m] * logp[m], from `maximum` and `sum` of a forward pass over the
 * same operands. Otherwise as sb_linear_logp_forward. */
SB_API SB_MUST_CHECK sb_status sb_linear_logp_backward(sb_engine *engine, void *stream, const sb_linear_logp *logp,
                                                       const sb_linear_logp_gradient *gradient, sb_error *error);

#ifdef __cplusplus
}
#endif
#endif
