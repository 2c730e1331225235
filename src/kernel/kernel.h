/* Kernels: what a back end offers for operators, and how one is found for a node. */
#ifndef SB_KERNEL_KERNEL_H
#define SB_KERNEL_KERNEL_H

#include "graph/op.h"
#include "kernel/device.h"

/* What a kernel decides by: a node and what is known of its inputs and outputs. */
typedef struct sb_kernel_query {
    const sb_node *node;
    const sb_fact *const *inputs; /* NULL where omitted; constants carry their tensor */
    const sb_fact
        *outputs; /* on a device, of open extents where only the data tell them: a kernel then waits for them */
    sb_isa isa;
    void *device;    /* the back end's device that is to compute the node, for its kernels' eyes; NULL: the host */
    sb_queue *queue; /* of that device, where there is one already, entered: `prepare` may copy by it; else NULL */
    bool open; /* only the data decide the outputs' extents: for kernels that find them (sb_kernel.finds_extents) */
    bool *exhausted; /* `supports` sets it when memory runs out before it can tell; may be NULL outside of that */
} sb_kernel_query;

#define SB_WHY_BYTES 256

/* What a kernel can make of one of a node's inputs ahead of its launches, packed weights for example. */
typedef struct sb_derived_form {
    int input;       /* of the node; -1: of none */
    uint64_t layout; /* with the kernel's `derive` and the input's extents, all that the bytes depend on but contents */
    size_t bytes;
} sb_derived_form;

/* The `op` of a kernel that decides by the op's flags instead of its name. */
#define SB_ANY_OP "*"

typedef struct sb_kernel {
    const char *op; /* the operator's name, of ONNX's own domain unless `domain` says otherwise; or SB_ANY_OP */
    const char *domain;
    const char *name; /* dtype, op, layout: what a profile shows */
    /* Whether the kernel computes this node. If not, `why` (SB_WHY_BYTES) says why in words for the user. */
    bool (*supports)(const sb_kernel_query *query, char *why);
    /* Computes what depends only on the node and on facts that are the same in all plans (the program of the nodes behind
     * a contraction, …) once per node, model and device. May be NULL. `*state` NULL is allowed. */
    sb_status (*prepare)(const sb_kernel_query *query, void **state, sb_error *error);
    void (*release)(void *state);
    /* The input whose memory output 0 may take over, -1: none. The plan does so where nobody else needs that input any
     * more; `launch` may then find output 0 at that input's address, if not with its strides. NULL: never. */
    int (*in_place)(const sb_kernel_query *query);
    /* So may that many outputs behind the first, each that of the next input. */
    int in_place_more;
    /* Kernels of a device: whether an input's elements stay in their place until the next step has ended, too, since one kernel may do the
     * work of both (cuda/queue/join.h). NULL: none. */
    bool (*lingers)(const sb_kernel_query *query, int input);
    /* Kernels of the host: whether `launch` finds outputs' extents that only the data decide, as eval does. */
    bool finds_extents;
    /* Kernels of a device: whether `launch` stops at the used extent (sb_call_used) of that axis, of which the rule
     * `axes` says that it is bounded, or that its elements are checked. NULL: at no axis' used extent. */
    bool (*bounded)(const sb_kernel_query *query, int input, int axis);
    /* Kernels of a device: the inputs that `launch` reads on the host (shapes, axes and the like), a bit for each; all
     * the others, and all outputs, are tensors on the device. */
    uint64_t host_inputs;
    /* Of them, those of which `launch` asks where the run's elements are (sb_call_known): of those on the host, it uses
     * none but for what outputs have at the planned extents. */
    uint64_t known_inputs;
    /* Kernels of a device: whether `launch` is quicker where the rows of that input, in memory, begin at multiples of 16
     * bytes. It follows from the node, the device, and the dtypes of inputs alone. The runtime then leaves gaps behind the
     * rows of a constant when it puts it there, once for all who read it, so nothing is kept twice. NULL: of none. */
    bool (*wants_gaps)(const sb_kernel_query *query, int input);
    /* Derived values: says which input `launch` can take in a form made ahead, and in which. It follows from the node, the
     * instruction set, and dtype and extents of that input alone, so that all plans of a model agree. NULL: none. Errors:
     * OUT_OF_MEMORY where the size overflows. */
    sb_status (*derives)(const sb_kernel_query *query, sb_derived_form *form, sb_error *error);
    /* Makes it of the input's elements as they are now: `from` lies where the kernel reads that input, `derived` (on the
     * same side, of form.bytes) is aligned to 64. The call has the node, the instruction set, workers, the target and the
     * error; no inputs, outputs, frame or state. On a device it gives tasks, like `launch`, and allocates nothing.
     *
     * The runtime calls it once for a constant, and for a variable of a state once for each version that is read. `launch`
     * finds the result as call->derived, or NULL, where the input is neither: it then makes do with the input. */
    sb_status (*derive)(sb_call *call, const sb_tensor *from, void *derived);
    /* The reverse on the host: writes the elements that `derived` was made of, bit for bit, to `to`, which has that input's
     * dtype and extents. Where a kernel can do that, `launch` and `in_place` do not follow the input's address while there
     * is a derived form: the runtime then lets a constant's elements go that nobody else reads. May be NULL. */
    void (*restore)(const sb_node *node, sb_isa isa, const void *derived, const sb_tensor *to);
    /* Computes the node: call->state is what `prepare` gave. Equals the op's `eval` bit for bit. A kernel with several ways
     * says in call->way which it took, and why none of the quicker ones. */
    sb_status (*launch)(sb_call *call);
} sb_kernel;

/** The first kernel of `families` (tables; NULL ends the list) that takes the node, or NULL. Then `why` becomes the
 * reason of the family to which `weigh` gives most for the node, the last one among equals, since what takes any
 * operator comes last; it stays where all weigh 0 or say nothing. `whose` is what kind of kernel is chosen, for
 * errors. Errors: OUT_OF_MEMORY. */
sb_status sb_kernel_choose(const sb_kernel *const *families, const sb_kernel_query *query,
                           int (*weigh)(const sb_kernel *family, const sb_node *node), const char *whose,
                           const sb_kernel **kernel, char *why, sb_error *error);

/** What `kernel`, which computes the query's node, derives: form->input -1 for nothing. Errors: as for `derives`. */
sb_status sb_kernel_derives(const sb_kernel *kernel, const sb_kernel_query *query, sb_derived_form *form,
                            sb_error *error);

/** Has `kernel` make its form of `from`, an input of `node`: see `derive`. `workers` may be NULL; `target` is NULL on the
 * host. Errors: OUT_OF_MEMORY; those of launches on a device. */
sb_status sb_kernel_derive(const sb_kernel *kernel, const sb_node *node, sb_isa isa, sb_workers *workers,
                           const sb_call_target *target, const sb_tensor *from, void *derived, sb_error *error);

/** Whether a kernel is for an operator by its name. */
bool sb_kernel_is_named(const sb_kernel *kernel, const sb_op *op);

/** A back end's kernel for a node. *kernel is NULL where it has none: `why` (SB_WHY_BYTES) then says why, in words for
 * the user. Errors: OUT_OF_MEMORY. */
typedef sb_status sb_kernel_finder(const sb_kernel_query *query, const sb_kernel **kernel, char *why, sb_error *error);

/* The host's. Whoever puts the library together says which (src/api/backends.c); where it finds none, reference
 * evaluation runs the node. A device's comes with its queues: sb_device_interface. */
extern sb_kernel_finder *const sb_find_host_kernel;

#endif
