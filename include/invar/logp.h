/* Log-probabilities of chosen tokens from hidden states and the weights of a language model's head, forward and backward, without
 * ever holding all logits.
 *
 *     logp[m] = log softmax(inverse_temperature * (hidden · weight)[m])[targets[m]]
 *
 * Logits are the chains of <invar/gemm.h>, kept in f32; what happens to them is written down to the last bit in
 * docs/numerics.md, section 9. So a row has the same bits alone, in any batch, on the CPU and on any GPU that has the chain,
 * whatever the chunks are in which the vocabulary is worked through.
 *
 * Everything is on the engine's side: memory of its device, or of the process. The caller gives the workspace, so that it comes
 * from the allocator that the rest of a program uses, and calls may be captured in graphs. */
#ifndef INVAR_LOGP_H
#define INVAR_LOGP_H

#include <invar/gemm.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The most columns that weight can have. */
#define IV_LINEAR_LOGP_MOST_VOCABULARY (INT64_C(1) << 24)

/** What is asked for. Start from IV_LINEAR_LOGP_DEFAULT. M rows, K hidden features, V words.
 *
 * A row whose target is `ignore_index` gives +0. A target that is neither that nor from 0 to V - 1 is INVALID_ARGUMENT on the
 * CPU; on a device, where nobody looks before the kernels do, logp is NaN, and so is the row's gradient. A row is NaN that has
 * a logit which is NaN or not below the bound of section 9 (about 1.45 million, +∞ included), or none above its negative. */
typedef struct iv_linear_logp {
    size_t struct_bytes;       /**< sizeof(iv_linear_logp): lets the struct grow */
    iv_matrix hidden;          /**< M × K, IV_BF16 or IV_F16; any strides. batch_stride is not read, here and below */
    iv_matrix weight;          /**< K × V, hidden's dtype; any strides: of the usual [V, K], row_stride is 1 and column_stride K */
    const int64_t *targets;    /**< M */
    int64_t ignore_index;
    float inverse_temperature; /**< from 2^-20 to 2^20 */
    float *logp;               /**< M; the forward pass writes it. The backward pass does not look at it */
    int32_t *maximum;          /**< M, and … */
    float *sum;                /**< … M: the sum of exponentials of a row is sum * 2^maximum. What the forward pass leaves for the
                                    backward pass; both may be NULL in the forward pass */
    void *workspace;           /**< aligned to 256 bytes; its contents mean nothing before and after a call */
    size_t workspace_bytes;    /**< at least what iv_linear_logp_workspace says */
    const char *schedule;      /**< of every product: as in iv_gemm */
} iv_linear_logp;

#define IV_LINEAR_LOGP_DEFAULT                                                                     \
    { .struct_bytes = sizeof(iv_linear_logp), .ignore_index = -100, .inverse_temperature = 1.0f }

/** What the backward pass is asked for besides. Start from IV_LINEAR_LOGP_GRADIENT_DEFAULT. Gradients of logits are rounded to
 * hidden's dtype before they enter the products; rows that are ignored have none, but zeros times infinities are NaN as ever. */
typedef struct iv_linear_logp_gradient {
    size_t struct_bytes;    /**< sizeof(iv_linear_logp_gradient): lets the struct grow */
    const float *d_logp;    /**< M */
    iv_matrix d_hidden;     /**< M × K, IV_F32 or hidden's dtype: chains over V, rounded once; `data` NULL: not wanted */
    iv_matrix d_weight;     /**< K × V, IV_F32: chains over the rows; `data` NULL: not wanted */
    bool accumulate;        /**< the chains of d_weight continue from what it holds */
    const iv_row_map *rows; /**< how M is cut into groups in d_weight, as in iv_gemm; NULL: into 16 from 0 */
} iv_linear_logp_gradient;

#define IV_LINEAR_LOGP_GRADIENT_DEFAULT                                                            \
    { .struct_bytes = sizeof(iv_linear_logp_gradient) }

/** How many bytes of workspace a call needs: the forward pass, or the backward pass when `gradient` is not NULL. Depends on
 * extents, dtypes and which gradients are wanted; addresses are not looked at, but for whether the gradients' are NULL.
 *
 * The forward pass works on up to 4096 rows at a time, and takes V / 16 bytes for each of these rows and about 32 MiB for a chunk of
 * logits: 73 MB at 4096 × 4096 × 151,936, where all logits in f32 would have 2,490 MB. The backward pass takes 6 bytes for each of
 * M rows (of up to 4096 without d_weight) and about 2^24 / M columns, at least 512: 101 MB there, and 4 bytes for each element
 * of a d_hidden of 16 bits: 67 MB there.
 *
 * Errors: INVALID_ARGUMENT, SHAPE, as the calls would report. */
IV_API IV_MUST_CHECK iv_status iv_linear_logp_workspace(iv_engine *engine, const iv_linear_logp *logp,
                                                        const iv_linear_logp_gradient *gradient,
                                                        size_t *bytes, iv_error *error);

/** Computes logp, and maximum and sum where they are wanted: on the CPU before it returns, on a device in `stream` as iv_gemm_run
 * does. Everything is checked before anything is launched. Errors: INVALID_ARGUMENT, SHAPE, UNSUPPORTED, DEVICE,
 * OUT_OF_MEMORY. */
IV_API IV_MUST_CHECK iv_status iv_linear_logp_forward(iv_engine *engine, void *stream,
                                                      const iv_linear_logp *logp, iv_error *error);

/** Computes the gradients of the sum over m of d_logp[m] * logp[m], from `maximum` and `sum` of a forward pass over the same
 * operands. Otherwise as iv_linear_logp_forward. */
IV_API IV_MUST_CHECK iv_status iv_linear_logp_backward(iv_engine *engine, void *stream,
                                                       const iv_linear_logp *logp,
                                                       const iv_linear_logp_gradient *gradient,
                                                       iv_error *error);

#ifdef __cplusplus
}
#endif
#endif
