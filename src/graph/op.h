/* What an operator is: one table entry, and the two calls that it answers.
 *
 * `infer` says what comes out (dtype, shape, where possible value) from what is known of what goes in; `eval`
 * computes it, and is the *definition* of every output bit. Faster kernels replace `eval` one by one and must
 * equal it bit for bit. */
#ifndef SB_GRAPH_OP_H
#define SB_GRAPH_OP_H

#include "base/isa.h"
#include "base/workers.h"
#include "graph/graph.h"
#include "tensor/walk.h"

typedef struct sb_infer sb_infer;
typedef struct sb_call sb_call;

enum {
    /* The output is another view of the first input's storage (or a copy, where strides do not allow one). */
    SB_OP_VIEW = 1,
    /* Two runs may differ (random numbers without a seed): never folded or merged. */
    SB_OP_RANDOM = 4,
    /* Runs graphs of its own (If, Loop, Scan, …). */
    SB_OP_CONTROL = 8,
    /* May put an input into its output as it is (sequences): such inputs outlive the node. */
    SB_OP_KEEPS = 16,
    /* Element-wise with broadcasting: every output element depends on one element of each input. */
    SB_OP_ELEMENTWISE = 32,
    /* A pass made it of other nodes, which are its body: it never comes from a file. */
    SB_OP_FUSED = 64
};

#define SB_ALL_INPUTS UINT64_MAX

/* How a variable that a node's graphs update passes the node: one more input, output, or both, at these places. */
typedef struct sb_passage {
    bool state;          /* whether the version enters as a state of the loop; else the graphs capture it */
    size_t node_input;   /* with `state`: of the formal inputs */
    size_t graph_input;  /* with `state` */
    size_t graph_output; /* of each graph: the next version */
    size_t node_output;  /* the version behind the node */
    size_t omittable;    /* formal inputs at the beginning that a node may leave out */
} sb_passage;

/* What is known of a question about formulas. */
typedef enum sb_answer { SB_ANSWER_NO, SB_ANSWER_YES, SB_ANSWER_OPEN } sb_answer;

struct sb_op {
    const char *name;              /* as in the ONNX standard */
    const char *domain;            /* "" for the standard's own */
    int least_inputs, most_inputs; /* most: -1 for any number */
    int least_outputs, most_outputs;
    unsigned flags;
    /* For ops that only move, repeat or drop elements: a bit per input whose elements appear unchanged in the output
     * (SB_ALL_INPUTS for any number). Shape arithmetic then passes through `eval` itself. 0 for all other ops. */
    uint64_t moved_inputs;
    size_t params_size;
    /* Checks the attributes and stores what `infer` and `eval` need in node->params (zeroed). May be NULL. */
    sb_status (*prepare)(sb_node *node, sb_error *error);
    /* Frees what `prepare` allocated behind params (not params itself). May be NULL. */
    void (*release)(void *params);
    sb_status (*infer)(sb_infer *infer);
    sb_status (*eval)(sb_call *call);
    /* For element-wise ops on s64: the output element as a formula of the `count` input elements, so that shape
     * arithmetic stays symbolic; NULL when there is none. May be NULL. */
    sb_dim (*formula)(const sb_node *node, sb_scope *scope, int count, const sb_dim *operands);
    /* For element-wise ops that ask something of two s64: the answer, where it is the same for all values of the symbols.
     * Exporters ask so whether an extent is -1. May be NULL. */
    sb_answer (*answer)(sb_scope *scope, const sb_dim *operands);
    /* For element-wise ops: the loop over a row of elements, compiled for `isa` (every one gives the same bits).
     * Operand 0 is the output, the others are the inputs in order, with the dtypes that `dtypes` lists (SB_DTYPE_NONE
     * where omitted); `*context` is what the loop is to be called with, and stays the node's. NULL when these dtypes
     * have no loop. May be NULL. */
    sb_walk_row *(*loop)(const sb_node *node, const sb_dtype *dtypes, sb_isa isa, void **context);
    /* For ops with graphs of their own: where a variable passes, when the graphs have `inputs` formal inputs and
     * `outputs` outputs. False when this version has no such place; NULL: none has, and graphs that update
     * variables are refused. */
    bool (*passage)(int version, const sb_attributes *attributes, size_t inputs, size_t outputs, sb_passage *passage);
};

/** The operator of that domain ("" and "ai.onnx" are the same) and name, or NULL. */
const sb_op *sb_op_find(const char *domain, const char *name);
/** All operators, in the order of the family lists: calls `visit` for each. */
void sb_op_visit(void (*visit)(void *context, const sb_op *op), void *context);

/* ---- inference ---- */

struct sb_infer {
    const sb_node *node;
    sb_scope *scope;
    int input_count;              /* formal inputs and captures, as in the node */
    const sb_fact *const *inputs; /* NULL where omitted */
    int output_count;
    sb_fact *outputs; /* to fill; all cleared before the call */
    sb_error *error;
};

/** The fact of formal input `index`, or NULL when it is omitted or beyond the node's inputs. */
const sb_fact *sb_infer_input(const sb_infer *infer, int index);
/** Reports a failure that names the node and its op. */
sb_status sb_infer_fail(const sb_infer *infer, sb_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** Checks that input `index` is present and a tensor whose dtype is in the set;
 * `dtypes` is a bit set of SB_DTYPES(...). */
sb_status sb_infer_require(const sb_infer *infer, int index, uint32_t dtypes, const sb_fact **fact);
/** The result of numpy broadcasting over the given facts, with `dtype`, into output `output`. */
sb_status sb_infer_broadcast(sb_infer *infer, int output, sb_dtype dtype, int count, const sb_fact *const *facts);
/** Output `output` has the input fact's shape and `dtype`. */
void sb_infer_shape_of(sb_infer *infer, int output, const sb_fact *fact, sb_dtype dtype);
/** An axis in [-rank, rank) as one in [0, rank); SHAPE otherwise. */
sb_status sb_infer_axis(const sb_infer *infer, int64_t axis, int rank, int *normalised);
/** The value of an integer input (s32 or s64, rank 0 or 1) as formulas: *known false when it is not known (then only
 * *count is set, -1 if unknown). Fails when there are more than `limit`. */
sb_status sb_infer_integers(const sb_infer *infer, int index, int limit, sb_dim *values, int *count, bool *known);
/** The same where plain numbers are needed: *known only when all are numbers. */
sb_status sb_infer_numbers(const sb_infer *infer, int index, int limit, int64_t *values, int *count, bool *known);
/** Sets the symbolic elements of output `output` (an s64 tensor whose shape is already set). Copies `elements`. */
sb_status sb_infer_set_elements(sb_infer *infer, int output, int64_t count, const sb_dim *elements);
/** Infers one of the node's graphs. `inputs` are the facts of its own inputs without the captures, which this function
 * adds; `outputs` (as many as the graph has) are filled, and are the caller's to clear. */
sb_status sb_infer_graph(const sb_infer *infer, const sb_graph *graph, int input_count, const sb_fact *inputs,
                         sb_fact *outputs);
/** A fresh extent for output `output`, dimension `dimension`: one that only the data decide. */
sb_dim sb_infer_fresh(sb_infer *infer, int output, int dimension);

#define SB_SET(dtype) (UINT32_C(1) << (dtype))
#define SB_SET_FLOAT (SB_SET(SB_F16) | SB_SET(SB_BF16) | SB_SET(SB_F32) | SB_SET(SB_F64))
#define SB_SET_SIGNED (SB_SET(SB_S8) | SB_SET(SB_S16) | SB_SET(SB_S32) | SB_SET(SB_S64))
#define SB_SET_UNSIGNED (SB_SET(SB_U8) | SB_SET(SB_U16) | SB_SET(SB_U32) | SB_SET(SB_U64))
#define SB_SET_INTEGER (SB_SET_SIGNED | SB_SET_UNSIGNED)
#define SB_SET_NUMBER (SB_SET_FLOAT | SB_SET_INTEGER)
#define SB_SET_PLAIN (SB_SET_NUMBER | SB_SET(SB_BOOL)) /* what arithmetic and conditions take */
/* The small types: only conversions know their values; all else moves them as bytes. */
#define SB_SET_SMALL_INTEGER (SB_SET(SB_S4) | SB_SET(SB_U4) | SB_SET(SB_S2) | SB_SET(SB_U2))
#define SB_SET_SMALL_FLOAT                                                                                             \
    (SB_SET(SB_F8E4M3FN) | SB_SET(SB_F8E4M3FNUZ) | SB_SET(SB_F8E5M2) | SB_SET(SB_F8E5M2FNUZ) | SB_SET(SB_F6E2M3) |     \
     SB_SET(SB_F6E3M2) | SB_SET(SB_F4E2M1))
#define SB_SET_SMALL (SB_SET_SMALL_FLOAT | SB_SET_SMALL_INTEGER | SB_SET(SB_F8E8M0))
#define SB_SET_ANY (SB_SET_PLAIN | SB_SET_SMALL | SB_SET(SB_STRING))
#define SB_SET_INDEX (SB_SET(SB_S32) | SB_SET(SB_S64))

/* ---- evaluation ---- */

/* The runtime's side of a call. A call without a frame allocates from the heap and cannot run graphs. */
typedef struct sb_frame {
    /* Storage for output `index` of `bytes` bytes: *storage retained for the caller. */
    sb_status (*allocate)(struct sb_frame *frame, const sb_call *call, int index, size_t bytes, sb_storage **storage,
                          char **data);
    /* Memory that is the call's until it returns. */
    sb_status (*workspace)(struct sb_frame *frame, const sb_call *call, size_t bytes, void **memory);
    sb_status (*run_graph)(struct sb_frame *frame, const sb_call *call, const sb_graph *graph, int input_count,
                           const sb_value *inputs, sb_value *outputs);
    /* Copies the elements of `from` to `to` where they lie, in the order of the call's other work:
     * for calls on a device. */
    sb_status (*copy)(struct sb_frame *frame, const sb_call *call, sb_tensor *to, const sb_tensor *from);
    /* Whether the call may begin iteration `iteration` of its loop: INTERRUPTED or LIMIT if not.
     * NULL: it always may. */
    sb_status (*iterate)(struct sb_frame *frame, const sb_call *call, int64_t iteration);
    /* As sb_call_used. NULL: all extents are used whole. */
    const int64_t *(*used)(struct sb_frame *frame, const sb_call *call, int input, int axis);
    /* As sb_call_known. NULL: all elements on the host are the run's. */
    const int64_t *(*known)(struct sb_frame *frame, const sb_call *call, int input);
    /* As sb_call_read. NULL: for calls on the host. */
    sb_status (*read)(struct sb_frame *frame, const sb_call *call, void *to, const void *from, size_t bytes);
} sb_frame;

/* Where the work of a call on a device goes. */
typedef struct sb_call_target {
    const void *queue; /* the back end's own: sb_queue.target */
    int step;          /* of the plan */
    uint32_t *fault;   /* of the device, for what is wrong with this step's data: see sb_call_fault */
    bool *may_fault;   /* set once a call has asked for its word; NULL where nobody wants to know */
} sb_call_target;

/* Which of its ways a kernel has taken, where it has several that differ in speed: static storage, NULL for nothing to say. */
typedef struct sb_call_way {
    const char *name;
    const char *why; /* why none of the quicker ones */
} sb_call_way;

struct sb_call {
    const sb_node *node;
    int input_count;
    const sb_value *inputs; /* borrowed; SB_KIND_NONE where omitted */
    int output_count;
    const sb_fact *facts; /* of the outputs, inferred from these very inputs */
    /* To fill; references pass to the runtime. A tensor that is already there is where the runtime wants that output,
     * with any strides: only for functions that take strided outputs, as Concat's. */
    sb_value *outputs;
    sb_workers *workers;
    sb_frame *frame;
    void *state;                  /* what the kernel prepared for this node; NULL for reference evaluation */
    const void *derived;          /* what the kernel has made of its derived input as it is now; NULL: nothing */
    sb_isa isa;                   /* the instruction set that kernels may use */
    const sb_call_target *target; /* the device that the call gives its work to; NULL on the host */
    sb_call_way way;              /* for a kernel to say, and for those who ask how nodes were computed */
    bool untouched; /* for a kernel that fails: nothing has been written, also where it computes in place */
    sb_error *error;
};

/** For a call on a device: the word in which its work leaves what is wrong with the data (an SB_FAULT_… of
 * kernel/fault.h), and which is looked at after the run. */
static inline uint32_t *sb_call_fault(const sb_call *call) {
    if (call->target->may_fault != NULL)
        *call->target->may_fault = true;
    return call->target->fault;
}

/** The tensor of formal input `index`, or NULL when it is omitted or beyond the node's inputs. */
sb_tensor *sb_call_input(const sb_call *call, int index);
/** Whether somebody wants output `index`. */
bool sb_call_wants(const sb_call *call, int index);
/** Reports a failure that names the node and its op. */
sb_status sb_call_fail(const sb_call *call, sb_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** Makes output `index` as its fact says: contiguous, not initialised; or gives the one that is there already (INTERNAL
 * when that has another dtype or other extents). `*tensor` is borrowed from call->outputs. */
sb_status sb_call_output(sb_call *call, int index, sb_tensor **tensor);
/** The same with a shape that the fact leaves open (INTERNAL when it contradicts the fact). */
sb_status sb_call_output_shape(sb_call *call, int index, sb_dtype dtype, int rank, const int64_t *dims,
                               sb_tensor **tensor);
/** Makes output `index` as its fact says, with its dimensions in memory in the order `order` (outermost first). */
sb_status sb_call_output_ordered(sb_call *call, int index, const int *order, sb_tensor **tensor);
/** Hands over a finished tensor (a view, usually) as output `index`: takes the reference, also on failure. */
sb_status sb_call_set_output(sb_call *call, int index, sb_tensor *tensor);
/** Input `index` as a contiguous tensor, valid until the call returns: the caller releases it. */
sb_status sb_call_contiguous(sb_call *call, int index, sb_tensor **tensor);
/** Copies all elements of `from` to `to`, where both lie: in the host's memory, or on the call's device. Same dtype,
 * same extents or broadcast ones of `from`, any strides; not for text. */
sb_status sb_call_copy(sb_call *call, sb_tensor *to, const sb_tensor *from);
/** A workspace of at least `bytes`, aligned to 64, valid until the call returns; not initialised. On a device, memory
 * of the device, which the call's later tasks may use. */
sb_status sb_call_workspace(sb_call *call, size_t bytes, void **memory);
/** Copies what the call's tasks so far have made of a workspace on its device to the host, from the workspace's first byte on, and
 * waits: for kernels whose outputs' extents the data decide, which nobody records. */
sb_status sb_call_read(sb_call *call, void *to, const void *workspace, size_t bytes);
/** Runs one of the node's graphs: `inputs` borrowed (captures are added by this function),
 * `outputs` owned by the caller. */
sb_status sb_call_run_graph(sb_call *call, const sb_graph *graph, int input_count, const sb_value *inputs,
                            sb_value *outputs);

/** For a call on a device: where, in memory of the device, how many rows of axis `axis` of input `input` are used, when
 * the tensor has room for more of them and the number may be another one each time the call's work is launched. NULL:
 * the tensor's extent is the number. What lies behind the used rows is garbage, which may decide no bit of what lies
 * within the used rows of the outputs, and may be no fault: see sb_axes_of and sb_kernel.bounded. */
const int64_t *sb_call_used(const sb_call *call, int input, int axis);

/** For a call on a device, of an input that lies on the host: where, in memory of the device, its elements are (s64, in
 * row-major order), when they follow from extents that may be other ones each time the call's work is launched. What
 * lies on the host is then what they are at the planned extents. NULL: the elements on the host are the ones. For kernels
 * that say so: see sb_kernel.known_inputs. */
const int64_t *sb_call_known(const sb_call *call, int input);

/** To be called before each iteration of a loop over graphs: SB_OK, or why the run has to end here. */
sb_status sb_call_iterate(sb_call *call, int64_t iteration);

/* ---- driving them ---- */

/** Infers the outputs of one node. `inputs` has an entry per node input (NULL where omitted). Small values that follow
 * from constants, and shape arithmetic, are computed on the way and noted in the facts. `outputs` must be cleared
 * facts; on failure they are cleared again. */
sb_status sb_node_infer(const sb_node *node, sb_scope *scope, const sb_fact *const *inputs, sb_fact *outputs,
                        sb_error *error);

/** Infers a whole graph. `facts` has an entry per value: those of the graph's inputs are set by the caller, the others
 * are cleared; constants are filled in here. On failure the caller clears all entries as well. */
sb_status sb_graph_infer(const sb_graph *graph, sb_scope *scope, sb_fact *facts, sb_error *error);

/** Infers one node of a graph from the facts that the graph's values hold, and sets those of its outputs. */
sb_status sb_graph_infer_node(sb_graph *graph, const sb_node *node, sb_scope *scope, sb_error *error);

/** Runs `function` (op->eval, or a faster kernel) on a prepared call and checks that what came out is what the facts
 * say. On failure all outputs are released. */
sb_status sb_call_run(sb_call *call, sb_status (*function)(sb_call *call));

#endif
