/* One harness under all tests of kernels: it makes cases from a seed, has each computed by its definition and by every
 * implementation that there is (the CPU's kernels for each instruction set with one thread and several, and a device's
 * kernels, over the fake driver or a real one), and compares the bits. What differs is said with the first element that
 * does, the shapes, strides and dtypes of all tensors, and the command that runs that case alone.
 *
 * A group of cases is a function that makes them one after the other; a call that runs a case ends it. Every case draws
 * from a random source of its own, whose seed is made of that of the program, the group's name and the case's number,
 * so that a case alone has the values that it had among the others. */
#ifndef HARNESS_H
#define HARNESS_H

#include "harness/checks.h"

#include "cuda/attention/attention.h"
#include "cuda/common/call.h"
#include "graph/op.h"
#include "kernel/kernel.h"
#include "support/distributions.h"
#include "support/graph_builder.h"
#include "support/must.h"
#include "support/random.h"
#include "tensor/tensor.h"

typedef struct harness_device harness_device;

enum { HARNESS_INPUTS = 40, HARNESS_OUTPUTS = 5 };

/* Who computes cases. The last is for what a group needs: the CPU need not have a kernel for a case; where it has one, it
 * computes the case with every instruction set, as where it must. */
typedef enum harness_side { HARNESS_CPU = 1, HARNESS_CUDA = 2, HARNESS_CPU_IF_ANY = 4 } harness_side;

typedef struct harness {
    random_source random; /* the present case's */
    uint64_t seed;
    const char *program, *only, *exactly; /* NULL: all cases; else a pattern of names, or one name */
    uint64_t every;                       /* one case in so many is run of those that `only` names */
    unsigned sides;
    bool list, bench, plant, plant_used;
    harness_device *device; /* opened when first needed */
    const char *driver;     /* NULL: the fake one */
    const char *cases;      /* the folder of written ones */
    const char *group;
    unsigned needs;              /* the sides that must have a kernel for each case of the group */
    int number;                  /* of the present case in its group */
    char name[128];              /* the present case's */
    bool chosen;                 /* whether it is to be run */
    int first_tile, last_tile;   /* the shapes of tiles that a device's contractions are run with; -1: the one chosen */
    unsigned values;             /* what the present case's tensors have been filled with: 1 << a distribution */
    int64_t ran, failed, absent; /* cases; and those for which a side that need not have a kernel has none */
    int64_t at_capacity;         /* runs */
} harness;

/* A group of cases. */
typedef struct harness_group {
    const char *name; /* FAMILY.GROUP */
    void (*run)(harness *h);
    unsigned needs;
    struct harness_group *next;
} harness_group;

/** A group, followed by the body of the function that makes its cases, FAMILY.GROUP.0 and so on; `sides` must have a
 * kernel for each of them. It enters itself among all groups before main begins. */
#define HARNESS_GROUP(family, group, sides)                                                                            \
    static void family##_##group(harness *h);                                                                          \
    __attribute__((constructor)) static void enter_##family##_##group(void) {                                          \
        static harness_group entry = {#family "." #group, family##_##group, sides, NULL};                              \
        harness_enter(&entry);                                                                                         \
    }                                                                                                                  \
    static void family##_##group(harness *h)

/** Puts a group, which is to live on, behind all others. */
void harness_enter(harness_group *group);
/** All groups, in the order in which they were entered. */
const harness_group *harness_groups(void);

/* ---- one node as a case ---- */

/* A node in the making: inputs are added from left to right, and released by harness_run. */
typedef struct harness_case {
    const char *op, *domain;
    int version, outputs, count;
    sb_tensor *inputs[HARNESS_INPUTS]; /* NULL: omitted */
    uint64_t constants;                /* inputs whose values are known beforehand, a bit each */
    sb_attributes attributes;
    sb_tensor *place; /* of garbage: where output 0 of the device's kernel is to lie; NULL: where the kernel wants it */
    sb_tensor *expected[HARNESS_OUTPUTS]; /* what the definition has to give; NULL: whatever it does */
    const char *refusal; /* what the message has to say with which the node is refused; NULL: it runs */
} harness_case;

/** A case in the making: a node of ONNX's own domain with one output. */
harness_case harness_op(const char *op, int version);
/** Adds the next input, whose reference the case takes; NULL: omitted. */
void add_input(harness_case *test, sb_tensor *tensor);
/** Adds a list that is known beforehand, as shapes and axes are in most models. */
void add_list(harness_case *test, int count, const int64_t *values);
void add_floats(harness_case *test, int count, const float *values);
void set_ints(harness_case *test, const char *name, int64_t count, const int64_t *values);
void set_int(harness_case *test, const char *name, int64_t value);
void set_float(harness_case *test, const char *name, float value);
void set_text(harness_case *test, const char *name, const char *value);
/** Where output 0 of the device's kernel shall lie, with any strides: only for kernels that take placed outputs. The case
 * takes the reference. What lies between the elements must stay as it is. */
void place_output(harness_case *test, sb_tensor *place);
/** Demands that output `index` has these elements: the definition and all who compute the case are compared with them.
 * The case takes the reference. */
void expect_output(harness_case *test, int index, sb_tensor *tensor);
/** Runs the case, if it is wanted, releases all of it, and goes on to the next one. */
void harness_run(harness *h, harness_case *test);

/* ---- a graph as a case ---- */

/** Runs a graph that is fused into one node first; its output is `result`, `inputs` are the tensors of its inputs.
 * Expected is what its nodes give one by one. The builder and the tensors stay the caller's; the graph is another one
 * afterwards. Goes on to the next case. */
void harness_run_fused(harness *h, builder *b, sb_value_id result, sb_tensor *const *inputs);

/* ---- cases written as text ---- */

/** Enters the group FAMILY.cases for each file FAMILY.txt of h->cases. False when there is none. */
bool harness_enter_files(const harness *h);

/* ---- raw functions as cases ---- */

/** Whether the present case is to be run; then harness_compare is called for each implementation. In any case
 * harness_next ends it. `what` and the inputs (NULL: omitted) tell it from others in a list. */
bool harness_wants(harness *h, const char *what, sb_tensor *const *inputs, int count);
void harness_next(harness *h);
/** The same for a function that computes nodes of a graph, which harness_evaluate does one by one. */
bool harness_wants_graph(harness *h, const builder *b, sb_tensor *const *inputs);
/** The value of each of the graph's values, by the nodes' definitions; the tensors and the list are the caller's to
 * release and to free. */
sb_tensor **harness_evaluate(const builder *b, sb_tensor *const *inputs);
/** Begins a group: its first case. */
void harness_begin_group(harness *h, const harness_group *group);
/** Compares what an implementation gave with what is expected. `inputs` are named in the report. */
void harness_compare(harness *h, const char *implementation, const sb_tensor *expected, const sb_tensor *found,
                     sb_tensor *const *inputs, int count);

/* ---- values ---- */

/* How a tensor lies in memory; BROADCAST has extents with a stride of 0. */
typedef enum layout { PACKED, TRANSPOSED, REVERSED, APART, SHIFTED, BROADCAST, LAYOUTS } layout;

/** A tensor whose strides are those of `layout`, with few different values, every magnitude, infinities, NaN, zeros of
 * both signs and subnormals. */
sb_tensor *make_tensor(harness *h, sb_dtype dtype, int rank, const int64_t *dims, layout layout);
/** The same with the dimensions in another order in memory, and a gap of one element behind each innermost row. */
sb_tensor *permuted_tensor(harness *h, sb_dtype dtype, int rank, const int64_t *dims);
/** The same in any layout. */
sb_tensor *any_tensor(harness *h, sb_dtype dtype, int rank, const int64_t *dims);
/** Ordinary numbers in any layout, so that every addition rounds and none gives NaN; or, `awkward`, anything. */
sb_tensor *number_tensor(harness *h, sb_dtype dtype, int rank, const int64_t *dims, bool awkward);
/** Elements of a distribution; dimensions in a random order and direction, with gaps, some broadcast. */
sb_tensor *random_tensor(harness *h, distribution kind, sb_dtype dtype, int rank, const int64_t *dims);
/** Elements of a distribution, packed. */
sb_tensor *packed_tensor(harness *h, distribution kind, sb_dtype dtype, int rank, const int64_t *dims);
/** The same, but for gaps of NaN behind rows, which begin at multiples of 16 bytes, as those of a device's constants may. */
sb_tensor *gapped_tensor(harness *h, distribution kind, sb_dtype dtype, int rank, const int64_t *dims);
/** The same of at least two dimensions with dimension 1 innermost in memory. */
sb_tensor *channels_last_tensor(harness *h, distribution kind, sb_dtype dtype, int rank, const int64_t *dims);
/** Indices of `extent` elements, counted from either end, in any layout. With `astray` all are outside. */
sb_tensor *any_indices(harness *h, sb_dtype dtype, int rank, const int64_t *dims, int64_t extent, bool astray);

extern const sb_dtype float_types[4];

/* ---- implementations ---- */

/* A node and its inputs, for all who compute it. */
typedef struct harness_node {
    const builder *b;
    const sb_node *node;
    sb_tensor *const *inputs; /* NULL where omitted */
    uint64_t constants;
    const sb_tensor *place; /* of garbage: where the device is to put output 0; NULL: anywhere */
} harness_node;

/* How a run ended. */
typedef enum harness_outcome {
    HARNESS_RAN,
    HARNESS_REFUSED, /* the data is at fault: an index outside, a length too long */
    HARNESS_ABSENT   /* there is no kernel; `why` says why */
} harness_outcome;

/** By the op's definition; outputs are the caller's. */
harness_outcome harness_define(const harness_node *node, sb_tensor **outputs, char *why);
/** By the CPU's kernel for `isa` with so many threads (1 to 15). Outputs start out as garbage. */
harness_outcome harness_run_cpu(const harness_node *node, sb_isa isa, int threads, sb_tensor **outputs, char *why);
/** By the device's kernel; outputs are contiguous and on the host. */
harness_outcome harness_run_device(harness *h, const harness_node *node, sb_tensor **outputs, char *why);
/** The device's element-wise operator of two inputs that kernels know by that name, onto garbage that lies as `place`
 * does. The result is contiguous and on the host; the caller's. *fault is whether the data is at fault. */
sb_tensor *harness_join_on_device(harness *h, const char *op, const sb_tensor *place, sb_tensor *const inputs[2],
                                  bool *fault);
/** The same for the device's copying of one tensor, which is broadcast. */
sb_tensor *harness_copy_on_device(harness *h, const sb_tensor *place, const sb_tensor *from);

/* A node whose inputs have room for more rows than are used, twice: with inputs of the same extents and strides, and
 * other contents. */
typedef struct harness_capacity {
    const harness_node *node;
    sb_tensor *const *inputs[2];
    int64_t used[2];                  /* how many rows */
    uint32_t axes[HARNESS_INPUTS];    /* of each input: those that are used partly, a bit each */
    uint32_t bounded[HARNESS_INPUTS]; /* of them: those whose used extent the kernel has to know of */
    const sb_tensor *over;            /* output 0 lies over input 0, with these strides; NULL: by itself */
    /* Of inputs that the kernel reads on the host: the elements that each run has instead, s64; NULL: those there. */
    sb_tensor *const *known[2];
} harness_capacity;

/* Elements of an input that a run may have instead of those on the host. */
enum { HARNESS_KNOWN = 16 };

/** By the device's kernel, which reads the used extents from memory of the device: first given to the device and
 * recorded, then replayed with the second inputs and number. ABSENT where the kernel does not stop at a used extent. */
harness_outcome harness_run_at_capacity(harness *h, const harness_capacity *capacity,
                                        sb_tensor *outputs[2][HARNESS_OUTPUTS], char *why);
/** Runs a node whose outputs are known at several capacities on the device, where the rules of its axes and its kernel
 * allow that, with garbage behind the used rows, and compares the used rows of the outputs with the definition's. */
void harness_check_capacity(harness *h, const harness_node *node);

/** Runs a node on the device whose kernel asks for a run's elements (sb_kernel.known_inputs), where those on the host are
 * others, which leave room for what the run makes, and compares what the run makes with the definition's. */
void harness_check_known(harness *h, const harness_node *node);

/** Closes the device, if one is open; over the fake driver nothing may live afterwards. */
void harness_close_device(harness *h);
/** Opens the device now, so that its first use is in no case's time. */
void harness_open_device(harness *h);
/** How the device computes attention from now on; QUICKEST is what groups begin and end with. */
void harness_choose_attention(harness *h, sb_cuda_attention_choice choice);

/* ---- timing ---- */

/* Who computes a node again and again. What `prepare` makes ready (the kernel and its state, what it derives of constants,
 * inputs and outputs where the kernel has them) is in no call's time. */
typedef struct harness_contestant {
    /* NULL: there is no kernel. The node and its inputs must stay as they are. */
    void *(*prepare)(harness *h, const harness_node *node);
    /* Computes the node once; the microseconds that it took. */
    double (*call)(void *ready);
    void (*release)(void *ready);
    void (*empty_caches)(harness *h); /* other data takes the place of what caches hold where it computes */
} harness_contestant;

extern const harness_contestant harness_definition, harness_cpu_kernel, harness_device_kernel;

/** Microseconds since some time. */
double harness_now(void);
/** More bytes than the last cache of the host or of a GPU holds; and those of the host written anew. */
size_t harness_beyond_caches(void);
void harness_empty_caches(harness *h);
/** Times the case and prints a line for each implementation. */
void harness_time(harness *h, const harness_node *node);

/* ---- describing ---- */

/** Prints the present case's name and a node made of those inputs: what tells the case from others of its group. */
void harness_describe(const harness *h, const harness_case *test);
/** The same for a graph that is to be fused. */
void harness_describe_graph(const harness *h, const sb_graph *graph, sb_tensor *const *inputs);
/** The same for a raw function. */
void harness_describe_raw(const harness *h, const char *what, sb_tensor *const *inputs, int count);

/* What is known of a node's inputs and outputs while it runs; made and cleared around each run. */
typedef struct harness_facts {
    sb_fact inputs[HARNESS_INPUTS], outputs[HARNESS_OUTPUTS];
    const sb_fact *pointers[HARNESS_INPUTS];
} harness_facts;

/** Facts of the inputs, with the values of those in `known`, and of the outputs. */
sb_status harness_facts_make(const harness_node *node, uint64_t known, harness_facts *facts, sb_error *error);
void harness_facts_clear(harness_facts *facts);

#endif
