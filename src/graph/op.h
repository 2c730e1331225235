/* What an operator is: one table entry, and the two calls that it answers.
 *
 * `infer` says what comes out (dtype, shape, where possible value) from what is known of what goes in; `eval` computes it, and is the *definition* of every
 * output bit. Faster kernels replace `eval` one by one and must equal it bit for bit. */
#ifndef IV_GRAPH_OP_H
#define IV_GRAPH_OP_H

#include "base/isa.h"
#include "base/workers.h"
#include "graph/graph.h"
#include "tensor/walk.h"

typedef struct iv_infer iv_infer;
typedef struct iv_call iv_call;

enum {
    /* The output is another view of the first input's storage (or a copy, where strides do not allow one). */
    IV_OP_VIEW = 1,
    /* Two runs may differ (random numbers without a seed): never folded or merged. */
    IV_OP_RANDOM = 4,
    /* Runs graphs of its own (If, Loop, Scan, …). */
    IV_OP_CONTROL = 8,
    /* May put an input into its output as it is (sequences): such inputs outlive the node. */
    IV_OP_KEEPS = 16,
    /* Element-wise with broadcasting: every output element depends on one element of each input. */
    IV_OP_ELEMENTWISE = 32,
    /* A pass made it of other nodes, which are its body: it never comes from a file. */
    IV_OP_FUSED = 64
};

#define IV_ALL_INPUTS UINT64_MAX

struct iv_op {
    const char *name;   /* as in the ONNX standard */
    const char *domain; /* "" for the standard's own */
    int least_inputs, most_inputs; /* most: -1 for any number */
    int least_outputs, most_outputs;
    unsigned flags;
    /* For ops that only move, repeat or drop elements: a bit per input whose elements appear unchanged in the output
     * (IV_ALL_INPUTS for any number). Shape arithmetic then passes through `eval` itself. 0 for all other ops. */
    uint64_t moved_inputs;
    size_t params_size;
    /* Checks the attributes and stores what `infer` and `eval` need in node->params (zeroed). May be NULL. */
    iv_status (*prepare)(iv_node *node, iv_error *error);
    /* Frees what `prepare` allocated behind params (not params itself). May be NULL. */
    void (*release)(void *params);
    iv_status (*infer)(iv_infer *infer);
    iv_status (*eval)(iv_call *call);
    /* For element-wise ops on s64: the output element as a formula of the `count` input elements, so that shape arithmetic stays symbolic;
     * NULL when there is none. May be NULL. */
    iv_dim (*formula)(const iv_node *node, iv_scope *scope, int count, const iv_dim *operands);
    /* For element-wise ops: the loop over a row of elements, compiled for `isa` (every one gives the same bits). Operand 0 is the output, the
     * others are the inputs in order, with the dtypes that `dtypes` lists (IV_DTYPE_NONE where omitted); `*context` is what
     * the loop is to be called with, and stays the node's. NULL when these dtypes have no loop. May be NULL. */
    iv_walk_row *(*loop)(const iv_node *node, const iv_dtype *dtypes, iv_isa isa, void **context);
};

/** The operator of that domain ("" and "ai.onnx" are the same) and name, or NULL. */
const iv_op *iv_op_find(const char *domain, const char *name);
/** All operators, in the order of the family lists: calls `visit` for each. */
void iv_op_visit(void (*visit)(void *context, const iv_op *op), void *context);

/* ---- inference ---- */

struct iv_infer {
    const iv_node *node;
    iv_scope *scope;
    int input_count;              /* formal inputs and captures, as in the node */
    const iv_fact *const *inputs; /* NULL where omitted */
    int output_count;
    iv_fact *outputs;             /* to fill; all cleared before the call */
    iv_error *error;
};

/** The fact of formal input `index`, or NULL when it is omitted or beyond the node's inputs. */
const iv_fact *iv_infer_input(const iv_infer *infer, int index);
/** Reports a failure that names the node and its op. */
iv_status iv_infer_fail(const iv_infer *infer, iv_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** Checks that input `index` is present and a tensor whose dtype is in the set; `dtypes` is a bit set of IV_DTYPES(...). */
iv_status iv_infer_require(const iv_infer *infer, int index, uint32_t dtypes, const iv_fact **fact);
/** The result of numpy broadcasting over the given facts, with `dtype`, into output `output`. */
iv_status iv_infer_broadcast(iv_infer *infer, int output, iv_dtype dtype, int count,
                             const iv_fact *const *facts);
/** Output `output` has the input fact's shape and `dtype`. */
void iv_infer_shape_of(iv_infer *infer, int output, const iv_fact *fact, iv_dtype dtype);
/** An axis in [-rank, rank) as one in [0, rank); SHAPE otherwise. */
iv_status iv_infer_axis(const iv_infer *infer, int64_t axis, int rank, int *normalised);
/** The value of an integer input (s32 or s64, rank 0 or 1) as formulas: *known false when it is not known (then only
 * *count is set, -1 if unknown). Fails when there are more than `limit`. */
iv_status iv_infer_integers(const iv_infer *infer, int index, int limit, iv_dim *values, int *count,
                            bool *known);
/** The same where plain numbers are needed: *known only when all are numbers. */
iv_status iv_infer_numbers(const iv_infer *infer, int index, int limit, int64_t *values, int *count,
                           bool *known);
/** Sets the symbolic elements of output `output` (an s64 tensor whose shape is already set). Copies `elements`. */
iv_status iv_infer_set_elements(iv_infer *infer, int output, int64_t count, const iv_dim *elements);
/** Infers one of the node's graphs. `inputs` are the facts of its own inputs without the captures, which this function
 * adds; `outputs` (as many as the graph has) are filled, and are the caller's to clear. */
iv_status iv_infer_graph(const iv_infer *infer, const iv_graph *graph, int input_count,
                         const iv_fact *inputs, iv_fact *outputs);
/** A fresh extent for output `output`, dimension `dimension`: one that only the data decide. */
iv_dim iv_infer_fresh(iv_infer *infer, int output, int dimension);

#define IV_SET(dtype) (UINT32_C(1) << (dtype))
#define IV_SET_FLOAT (IV_SET(IV_F16) | IV_SET(IV_BF16) | IV_SET(IV_F32) | IV_SET(IV_F64))
#define IV_SET_SIGNED (IV_SET(IV_S8) | IV_SET(IV_S16) | IV_SET(IV_S32) | IV_SET(IV_S64))
#define IV_SET_UNSIGNED (IV_SET(IV_U8) | IV_SET(IV_U16) | IV_SET(IV_U32) | IV_SET(IV_U64))
#define IV_SET_INTEGER (IV_SET_SIGNED | IV_SET_UNSIGNED)
#define IV_SET_NUMBER (IV_SET_FLOAT | IV_SET_INTEGER)
#define IV_SET_PLAIN (IV_SET_NUMBER | IV_SET(IV_BOOL)) /* everything but text */
#define IV_SET_ANY (IV_SET_PLAIN | IV_SET(IV_STRING))
#define IV_SET_INDEX (IV_SET(IV_S32) | IV_SET(IV_S64))

/* ---- evaluation ---- */

/* The runtime's side of a call. A call without a frame allocates from the heap and cannot run graphs. */
typedef struct iv_frame {
    /* Storage for output `index` of `bytes` bytes: *storage retained for the caller. */
    iv_status (*allocate)(struct iv_frame *frame, const iv_call *call, int index, size_t bytes,
                          iv_storage **storage, char **data);
    /* Memory that is the call's until it returns. */
    iv_status (*scratch)(struct iv_frame *frame, const iv_call *call, size_t bytes, void **memory);
    iv_status (*run_graph)(struct iv_frame *frame, const iv_call *call, const iv_graph *graph,
                           int input_count, const iv_value *inputs, iv_value *outputs);
    /* Copies the elements of `from` to `to` where they lie, in the order of the call's other work: for calls on a device. */
    iv_status (*copy)(struct iv_frame *frame, const iv_call *call, iv_tensor *to, const iv_tensor *from);
    /* Whether the call may begin iteration `iteration` of its loop: INTERRUPTED or LIMIT if not. NULL: it always may. */
    iv_status (*iterate)(struct iv_frame *frame, const iv_call *call, int64_t iteration);
} iv_frame;

struct iv_call {
    const iv_node *node;
    int input_count;
    const iv_value *inputs; /* borrowed; IV_KIND_NONE where omitted */
    int output_count;
    const iv_fact *facts; /* of the outputs, inferred from these very inputs */
    iv_value *outputs;    /* to fill; references pass to the runtime */
    iv_workers *workers;
    iv_frame *frame;
    void *state; /* what the kernel prepared for this node; NULL for reference evaluation */
    iv_isa isa;  /* the instruction set that kernels may use */
    const struct iv_cuda_target *target; /* the device that the call gives its work to (cuda/call.h); NULL on the CPU */
    iv_error *error;
};

/** The tensor of formal input `index`, or NULL when it is omitted or beyond the node's inputs. */
iv_tensor *iv_call_input(const iv_call *call, int index);
/** Whether somebody wants output `index`. */
bool iv_call_wants(const iv_call *call, int index);
/** Reports a failure that names the node and its op. */
iv_status iv_call_fail(const iv_call *call, iv_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** Makes output `index` as its fact says: contiguous, not initialised. `*tensor` is borrowed from call->outputs. */
iv_status iv_call_output(iv_call *call, int index, iv_tensor **tensor);
/** Makes output `index` with a shape that the fact leaves open (INTERNAL when it contradicts the fact). */
iv_status iv_call_output_shape(iv_call *call, int index, iv_dtype dtype, int rank,
                               const int64_t *dims, iv_tensor **tensor);
/** Makes output `index` as its fact says, with its dimensions in memory in the order `order` (outermost first). */
iv_status iv_call_output_ordered(iv_call *call, int index, const int *order, iv_tensor **tensor);
/** Hands over a finished tensor (a view, usually) as output `index`: takes the reference, also on failure. */
iv_status iv_call_set_output(iv_call *call, int index, iv_tensor *tensor);
/** Input `index` as a contiguous tensor, valid until the call returns: the caller releases it. */
iv_status iv_call_contiguous(iv_call *call, int index, iv_tensor **tensor);
/** Copies all elements of `from` to `to`, where both lie: in the host's memory, or on the call's device. Same dtype, same
 * extents or broadcast ones of `from`, any strides; not for text. */
iv_status iv_call_copy(iv_call *call, iv_tensor *to, const iv_tensor *from);
/** Scratch memory of at least `bytes`, aligned to 64, valid until the call returns; not initialised. On a device, memory of
 * the device, which the call's later tasks may use. */
iv_status iv_call_scratch(iv_call *call, size_t bytes, void **memory);
/** Runs one of the node's graphs: `inputs` borrowed (captures are added by this function), `outputs` owned by the caller. */
iv_status iv_call_run_graph(iv_call *call, const iv_graph *graph, int input_count,
                            const iv_value *inputs, iv_value *outputs);

/** To be called before each iteration of a loop over graphs: IV_OK, or why the run has to end here. */
iv_status iv_call_iterate(iv_call *call, int64_t iteration);

/* ---- driving them ---- */

/** Infers the outputs of one node. `inputs` has an entry per node input (NULL where omitted). Small values that follow from constants, and
 * shape arithmetic, are computed on the way and noted in the facts. `outputs` must be cleared facts; on failure they are cleared again. */
iv_status iv_node_infer(const iv_node *node, iv_scope *scope, const iv_fact *const *inputs,
                        iv_fact *outputs, iv_error *error);

/** Infers a whole graph. `facts` has an entry per value: those of the graph's inputs are set by the caller, the others are cleared; constants
 * are filled in here. On failure the caller clears all entries as well. */
iv_status iv_graph_infer(const iv_graph *graph, iv_scope *scope, iv_fact *facts, iv_error *error);

/** Runs `function` (op->eval, or a faster kernel) on a prepared call and checks that what came out is what the facts say.
 * On failure all outputs are released. */
iv_status iv_call_run(iv_call *call, iv_status (*function)(iv_call *call));

#endif
