/* What the sources of the fake driver share. Everything here is called with the fake's lock held. */
#ifndef FAKE_INTERNAL_H
#define FAKE_INTERNAL_H

#include <pthread.h>

#include "cuda/driver/driver_types.h"
#include "fake_cuda.h"

/* The functions, under the names that cuGetProcAddress knows. */
#define SB_CUDA_CALL(name, version, arguments) CUresult name arguments;
#include "cuda/driver/driver_calls.h"
#undef SB_CUDA_CALL

typedef enum object_kind { MEMORY, HOST_MEMORY, STREAM, EVENT, MODULE, GRAPH, EXECUTABLE, KINDS } object_kind;

/* Whatever a handle stands for; all that live are in one list. */
typedef struct object {
    object_kind kind;
    struct CUctx_st *context;
    struct object *next;
} object;

struct CUctx_st {
    int device;
    int retained;
    struct CUstream_st *legacy; /* made when first used; not an object of the list */
};

typedef struct memory {
    object object;
    char *bytes;
    size_t size;
    bool mapped; /* to a file full of the pattern */
} memory;

typedef enum operation_kind { KERNEL_RUN, COPY, FILL, EVENT_RECORD, EVENT_WAIT } operation_kind;

typedef struct operation {
    operation_kind kind;
    struct operation *next;
    /* KERNEL_RUN */
    struct CUfunc_st *function;
    unsigned grid[3], block[3], shared_bytes;
    char *parameters;
    /* COPY and FILL; a side is device memory, or pinned memory */
    uintptr_t to, from;
    size_t bytes;
    bool to_device, from_device;
    unsigned char value;
    struct CUgraphExec_st *executable; /* whose launch it belongs to, or NULL */
    /* EVENT_RECORD and EVENT_WAIT */
    struct CUevent_st *event;
    int ticket;
} operation;

#define MOST_EDGES 256
typedef struct CUgraphNode_st {
    operation operation; /* a COPY of no bytes where the node is empty */
    int edge_count;
    struct CUgraphNode_st *edges[MOST_EDGES]; /* what must be done before */
    bool done;
    struct CUgraphNode_st *next;
} node;

struct CUgraph_st {
    object object;
    node *nodes; /* newest first */
    int count;
};

struct CUgraphExec_st {
    object object;
    int count;
    operation *operations;
};

typedef struct capture {
    CUstreamCaptureMode mode;
    pthread_t thread;
    struct CUstream_st *origin;
    struct CUgraph_st *graph;
    bool invalid;
    struct capture *next;
} capture;

struct CUstream_st {
    object object;
    bool blocking, legacy;
    operation *first, *last;
    capture *capture;
    int edge_count;
    node *edges[MOST_EDGES]; /* what the next node of the capture depends on */
};

struct CUevent_st {
    object object;
    bool timed;
    struct CUstream_st *stream; /* of the last record */
    int ticket, done;           /* numbers of the last record and of the last that happened */
    double milliseconds;
    capture *capture;
    int edge_count;
    node *edges[MOST_EDGES];
};

struct CUfunc_st {
    char *name;
    size_t parameter_bytes;
    fake_kernel *run;
    struct CUfunc_st *next;
};

struct CUmod_st {
    object object;
    char *image; /* a copy */
    struct CUfunc_st *functions;
};

typedef struct fake_state {
    pthread_mutex_t lock;
    int version;
    int device_count;
    fake_device devices[FAKE_MOST_DEVICES];
    struct CUctx_st contexts[FAKE_MOST_DEVICES];
    bool initialised;
    object *objects;
    capture *captures;
    int sticky[FAKE_MOST_DEVICES];
    int broken_kernel;
    double clock; /* milliseconds */
    bool guarded; /* FAKE_CUDA_GUARD */
} fake_state;
extern fake_state fake;

/* Every function of the driver begins with START: it takes the lock, logs the call with a
 * printf-style description of its arguments, and gives CUDA_SUCCESS or the failure that was asked
 * for. It ends with `return finish(result)`. */
CUresult start(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
CUresult finish(CUresult result);
#define START(...)                                                                                                     \
    CUresult result = start(__func__, __VA_ARGS__);                                                                    \
    if (result != CUDA_SUCCESS)                                                                                        \
    return finish(result)
/* The same for functions that give something back: those do their work in any case. */
#define START_GIVING_BACK(...) CUresult result = start(__func__, __VA_ARGS__)

/* Whether the failure that a test has asked for has happened. */
bool failure_happened(void);
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The thread's current context, or NULL. */
struct CUctx_st *current_context(void);
void set_sticky(int device, CUresult result);

/* Objects. `add` fills in the head of a fresh object; `is_live` says whether a handle is one of that kind. */
void *add(object_kind kind, size_t size);
bool is_live(object_kind kind, const void *handle);
/* Takes it out of the list and frees it; what hangs on it is freed by the caller before. */
void drop(void *handle);
/* Whether the bytes are all inside one live block. */
bool inside(object_kind kind, uintptr_t address, size_t bytes);

/* Streams. */
struct CUstream_st *find_stream(CUstream handle);
/* A copy of the operation in the stream, or a node where it is captured. */
CUresult enqueue(struct CUstream_st *stream, const operation *operation);
/* Whether the device works now, and guarded memory can be touched: fake_guard.c. */
void allow_device_memory(bool allowed);
/* Gives a block its bytes, filled with a pattern. */
void make_bytes(memory *block);
void free_bytes(memory *block);
/* Runs everything in the stream, or in all streams; gives the sticky result if one turned up. */
CUresult drain(struct CUstream_st *stream);
CUresult drain_all(void);
void free_stream(struct CUstream_st *stream);
void forget_captures(void);
/* For calls that a capturing thread must not make: the failure, after which the capture is invalid. */
CUresult forbid_while_capturing(void);

/* Graphs. */
node *add_node(struct CUgraph_st *graph, const operation *operation, int edge_count, node *const *edges);
void free_graph(struct CUgraph_st *graph);
void free_executable(struct CUgraphExec_st *executable);
operation copy_operation(const operation *from);
void free_operation(operation *operation);

/* Modules. */
void free_module(struct CUmod_st *module);

#endif
