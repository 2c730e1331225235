/* Attention by tensor cores: what it is for, and how rows are shared out. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cuda/attention/attention.h"
#include "cuda/attention/attention16_append.h"
#include "cuda/attention/attention16_few_parameters.h"
#include "cuda/attention/attention16_maps.h"
#include "cuda/attention/attention16_prefill.h"
#include "cuda/attention/attention16_prefill_parameters.h"
#include "cuda/attention/attention16_stream.h"
#include "cuda/attention/attention16_stream_parameters.h"
#include "cuda/contraction/gemm16_conv.h"
#include "ops/attention_values.h"

/* Whether the device reads rows of it in pieces of 16 bytes, and finds them by numbers of 32 bits. */
static bool is_regular(const sb_cuda_attention_array *array, int64_t width) {
    return array->data == NULL || ((width <= 1 || array->column == 1) && array->row % 8 == 0 &&
                                   array->row <= INT32_MAX / 2 && array->row >= -(INT32_MAX / 2) &&
                                   array->head % 8 == 0 && array->batch % 8 == 0 && (uintptr_t)array->data % 16 == 0);
}

/* Whether all pages of keys and of values are one array of lines, whose numbers have 32 bits: *lines are from a page to the next. */
static bool find_page_lines(const sb_attention_work *a, int64_t *lines) {
    int64_t count, pages = a->pages.pages;
    *lines = a->pages.rows;
    if (pages > 1 && a->k.row != 0)
        *lines = a->k.batch / a->k.row;
    if (pages > 1 && (a->k.batch != *lines * a->k.row || a->v.batch != *lines * a->v.row))
        return false;
    return *lines >= 0 && a->pages.rows <= INT32_MAX && !__builtin_mul_overflow(pages, *lines, &count) &&
           !__builtin_add_overflow(count, a->pages.rows, &count) && count <= INT32_MAX;
}

/* Why tensor cores do not compute it; NULL: they do. */
static const char *obstacle(const sb_call *call, const sb_cuda_attention_call *made) {
    const sb_attention_work *a = &made->attention;
    const sb_cuda_attention *p = &made->parameters;
    int64_t page_lines;
    if (a->dtype != SB_F16 && a->dtype != SB_BF16)
        return "only f16 and bf16 are products for tensor cores";
    if (a->wide)
        return "the softmax is computed in f64";
    if (a->scores.data != NULL && a->stage == SB_ATTENTION_PROBABILITY)
        return "probabilities are given out";
    if (a->width % 8 != 0 || a->value_width % 8 != 0 || a->width > 256 || a->value_width > 256)
        return "widths of heads are not multiples of 8 up to 256";
    if (a->width == 0 || a->keys == 0)
        return "there is nothing to multiply";
    if (a->pages.table != NULL && !find_page_lines(a, &page_lines))
        return "pages do not lie one behind the other, or hold 2^31 keys or more";
    if (a->keys > INT32_MAX - SB_ATTENTION_SPLIT)
        return "there are 2^31 keys or more";
    if (!is_regular(&p->q, a->width) || !is_regular(&p->k, a->width) || !is_regular(&p->past_k, a->width) ||
        !is_regular(&p->v, a->value_width) || !is_regular(&p->past_v, a->value_width))
        return "queries, keys or values do not lie in aligned pieces of 8 elements";
    if (p->y.column != 1 || p->y.row % 2 != 0 || p->y.head % 2 != 0 || p->y.batch % 2 != 0 ||
        (uintptr_t)p->y.data % 4 != 0)
        return "the output does not lie in rows";
    if (!sb_gemm16_has_hopper_code(sb_cuda_call_device(call)))
        return "the device has no tensor cores of Hopper, or the build no kernels for them";
    return NULL;
}

static int64_t up(int64_t number, int64_t unit) {
    return (number + unit - 1) / unit;
}

/* Whether something happens to scores but what their exponents' scale takes over. */
static bool is_general(const sb_cuda_attention_call *made) {
    return made->parameters.mask_kind != SB_CUDA_ATTENTION_NO_MASK ||
           !sb_attention_is_moderate(made->attention.scale) || made->attention.cap != 0;
}

/* Whether warpgroups are quicker than tiles of 64 rows, which share keys out among blocks of threads where there are few rows. A block of
 * keys takes a tile of warpgroups 2.4 us, tiles of 64 rows some 8 us of a multiprocessor, of 132, and what they fold some 10 us, and 13.5 ns
 * for each row of a head (29 us of 64 rows of 32 heads, 213 of 512). */
static bool are_warpgroups_quicker(const sb_attention_work *a) {
    const int64_t group = a->heads / a->key_heads, blocks = up(a->keys, SB_ATTENTION_BLOCK);
    const int64_t tiles = a->batch * a->key_heads * up(a->queries, sb_cuda_attention16_prefill_rows(a) / group);
    const int64_t folded = a->batch * a->heads * a->queries;
    return tiles >= 40 || blocks * (40 - tiles) <= 165 + folded * 9 / 40;
}

/* Whether warpgroups compute the work: where they can, of as many rows as are worth a tile, and are the quickest way or the chosen one. */
static bool takes_warpgroups(const sb_call *call, const sb_cuda_attention_call *made) {
    const sb_attention_work *a = &made->attention;
    const int choice = atomic_load_explicit(&sb_cuda_call_device(call)->attention, memory_order_relaxed);
    if (choice == SB_CUDA_ATTENTION_TILES || choice == SB_CUDA_ATTENTION_STREAMS ||
        sb_cuda_attention16_refuses_prefill(made) != NULL ||
        a->heads / a->key_heads * a->queries <= SB_CUDA_ATTENTION16_DECODE_ROWS)
        return false;
    return choice == SB_CUDA_ATTENTION_WARPGROUPS || are_warpgroups_quicker(a);
}

void sb_cuda_attention_choose(sb_cuda_device *device, sb_cuda_attention_choice choice) {
    atomic_store_explicit(&device->attention, choice, memory_order_relaxed);
}

sb_status sb_cuda_attention_choose_by_name(sb_cuda_device *device, const char *name, sb_error *error) {
    static const char *const names[] = {"quickest", "tiles", "warpgroups", "clusters", "streams"};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
        if (strcmp(name, names[i]) == 0) {
            sb_cuda_attention_choose(device, (sb_cuda_attention_choice)i);
            return SB_OK;
        }
    }
    return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                   "SAMEBIT_CUDA_ATTENTION is '%.40s': it is quickest, tiles, warpgroups, clusters or streams", name);
}

/* How rows are shared out among blocks of threads. */
typedef struct way {
    const char *name, *split_name; /* what placement calls it, and with splits apart */
    const char *family;            /* src/cuda/attention/<family>_<width>.cu */
    int rows, width;               /* of a block of threads: the widest heads are these */
    int64_t enough;                /* blocks of threads of which a device needs no more, so that splits stay together */
    int64_t at_once;               /* blocks of threads that a multiprocessor has at once */
    unsigned shared_bytes;
    bool streams, warpgroups; /* by TMA: attention16_stream.c, attention16_prefill.c, which know their kernels */
} way;

/* What one launch computes, after which those whose splits are apart are folded. */
typedef struct share {
    way way;
    int64_t more_than, up_to; /* with pages: of sequences with so many rows that share keys */
    int64_t tiles;            /* at most, of all heads of keys */
    bool is_split;
} share;

/* All of it. */
typedef struct plan {
    share shares[2];
    int count;
    int64_t splits;
    int64_t part_rows, parts_up_to; /* of the shares whose splits are apart; no row: there are none */
    const char *name;
} plan;

static way few_rows(int64_t widest, int64_t multiprocessors) {
    int width = widest <= 64 ? 64 : widest <= 96 ? 96 : widest <= 128 ? 128 : 256;
    return (way){.name = "tensor cores, 16 rows at a time",
                 .split_name = "tensor cores, 16 rows at a time, splits apart",
                 .family = "attention16_decode",
                 .rows = SB_CUDA_ATTENTION16_DECODE_ROWS,
                 .width = width,
                 /* Heads of up to 128 have no room for the sums of several splits. */
                 .enough = width == 256 ? multiprocessors : INT64_MAX,
                 .at_once = width == 256 ? 1 : 2,
                 .shared_bytes = (unsigned)SB_CUDA_ATTENTION16_DECODE_SHARED(width)};
}

static way many_rows(int64_t widest, int64_t multiprocessors) {
    int width = widest <= 64 ? 64 : 128;
    if (widest > 128)
        return few_rows(widest, multiprocessors);
    return (way){.name = "tensor cores, 64 rows at a time",
                 .split_name = "tensor cores, 64 rows at a time, splits apart",
                 .family = "attention16_tile",
                 .rows = SB_CUDA_ATTENTION16_ROWS,
                 .width = width,
                 .enough = 2 * multiprocessors,
                 .at_once = 2,
                 .shared_bytes = (unsigned)SB_CUDA_ATTENTION16_SHARED(width)};
}

static way streamed_rows(int width) {
    return (way){.name = "tensor cores, 8 rows at a time by TMA",
                 .split_name = "tensor cores, 8 rows at a time by TMA, splits apart",
                 .rows = SB_CUDA_ATTENTION16_STREAM_ROWS,
                 .width = width,
                 .enough = INT64_MAX,
                 .at_once = SB_CUDA_ATTENTION16_STREAM_BLOCKS(width),
                 .streams = true};
}

static way warpgroup_rows(const sb_attention_work *a) {
    const int rows = sb_cuda_attention16_prefill_rows(a);
    return (way){.name = rows == 128 ? "tensor cores, 128 rows at a time by warpgroups"
                                     : "tensor cores, 64 rows at a time by warpgroups",
                 .rows = rows,
                 .width = sb_attention16_width(a),
                 .enough = 0, /* never has splits apart */
                 .at_once = 1,
                 .warpgroups = true};
}

/* Keys side by side: all samples have as many rows. */
static plan plan_samples(const sb_attention_work *a, bool streams, bool warpgroups, int64_t widest,
                         int64_t multiprocessors) {
    int64_t rows = a->heads / a->key_heads * a->queries;
    way way = warpgroups                                ? warpgroup_rows(a)
              : streams                                 ? streamed_rows(sb_attention16_width(a))
              : rows <= SB_CUDA_ATTENTION16_DECODE_ROWS ? few_rows(widest, multiprocessors)
                                                        : many_rows(widest, multiprocessors);
    int64_t splits = up(a->keys, SB_ATTENTION_SPLIT), tiles = a->batch * a->key_heads * up(rows, way.rows);
    bool is_split = splits > 1 && tiles < way.enough;
    return (plan){.shares = {{way, 0, INT64_MAX, tiles, is_split}},
                  .count = 1,
                  .splits = splits,
                  .part_rows = is_split ? a->queries : 0,
                  .parts_up_to = INT64_MAX,
                  .name = is_split ? way.split_name : way.name};
}

/* Tiles of sequences that have `rows` rows together, all but those that the device knows. */
static int64_t most_tiles(const sb_attention_work *a, int64_t group, int tile_rows) {
    int64_t sequences = a->pages.sequences < a->queries ? a->pages.sequences : a->queries;
    return a->key_heads * (a->queries * group / tile_rows + sequences);
}

/* Whether some sequences may have many rows that share keys, and others few. */
static bool is_mixed(const sb_attention_work *a) {
    const int64_t few = SB_CUDA_ATTENTION16_DECODE_ROWS, group = a->heads / a->key_heads;
    return a->pages.table != NULL && a->pages.sequences > 1 && group <= few &&
           group * a->queries > few * a->pages.sequences;
}

/* What that is called. */
static const char *mixed_name(bool streams, bool warpgroups) {
    if (streams)
        return warpgroups
                   ? "tensor cores, rows of a sequence 8 at a time by TMA where they are few, else by warpgroups"
                   : "tensor cores, rows of a sequence 8 at a time by TMA where they are few, else 64, or with wide "
                     "heads 16";
    return warpgroups
               ? "tensor cores, rows of a sequence 16 at a time where they are few, else by warpgroups"
               : "tensor cores, rows of a sequence 16 at a time where they are few, else 64, or with wide heads 16";
}

/* Keys on pages. How many rows each sequence has only the device knows; where some may have many and others few, there is a launch for
 * each kind. Few rows always have their splits apart: one sequence may have most of the keys. */
static plan plan_sequences(const sb_attention_work *a, bool streams, bool warpgroups, int64_t widest,
                           int64_t multiprocessors) {
    const int64_t few = SB_CUDA_ATTENTION16_DECODE_ROWS, group = a->heads / a->key_heads;
    int64_t rows = group * a->queries, splits = up(a->keys, SB_ATTENTION_SPLIT);
    plan plan = {.splits = splits, .parts_up_to = INT64_MAX};
    const bool mixed = is_mixed(a);
    bool has_few = mixed || (group <= few && rows <= few * a->pages.sequences);
    bool has_many = mixed || !has_few;
    if (has_many) {
        way way = warpgroups ? warpgroup_rows(a) : many_rows(widest, multiprocessors);
        int64_t tiles = most_tiles(a, group, way.rows);
        plan.shares[plan.count++] = (share){way, mixed ? few : 0, INT64_MAX, tiles, splits > 1 && tiles < way.enough};
    }
    if (has_few) {
        way way = streams ? streamed_rows(sb_attention16_width(a)) : few_rows(widest, multiprocessors);
        plan.shares[plan.count++] =
            (share){way, 0, mixed ? few : INT64_MAX, most_tiles(a, group, way.rows), splits > 1};
    }
    const share *first = &plan.shares[0];
    plan.part_rows = first->is_split ? a->queries : 0;
    if (mixed && !first->is_split && splits > 1) {
        int64_t most = few / group * a->pages.sequences;
        plan.part_rows = most < a->queries ? most : a->queries;
        plan.parts_up_to = few;
    }
    plan.name = mixed ? mixed_name(streams, warpgroups) : first->is_split ? first->way.split_name : first->way.name;
    return plan;
}

/* Room for what each split comes to. */
static sb_status make_room(sb_call *call, sb_cuda_attention_call *made, sb_cuda_work *work, const plan *plan) {
    const sb_attention_work *a = &made->attention;
    void *memory;
    size_t bytes = (size_t)SB_CUDA_ATTENTION_PARTIAL(a->value_width) * sizeof(float);
    const int64_t factors[] = {a->batch, a->heads, plan->part_rows, plan->splits};
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++) {
        if (__builtin_mul_overflow(bytes, (size_t)factors[i], &bytes))
            return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY,
                                "what the splits of attention come to has more bytes than a number holds");
    }
    SB_TRY(sb_call_workspace(call, bytes, &memory));
    made->parameters.part_rows = plan->part_rows;
    made->parameters.parts_up_to = plan->parts_up_to;
    made->parameters.partial = memory;
    sb_cuda_work_touches(work, memory, bytes, true);
    return SB_OK;
}

/* Blocks of threads go on to further work a grid apart, so any number of them will do. */
static sb_status launch_one(sb_call *call, sb_cuda_work *work, const sb_cuda_attention *parameters, const char *module,
                            const char *kernel, int64_t blocks) {
    work->module = module;
    work->kernel = kernel;
    work->parameters = parameters;
    work->parameter_bytes = sizeof *parameters;
    work->threads = SB_CUDA_ATTENTION16_THREADS;
    work->blocks = (unsigned)(blocks < INT32_MAX ? blocks : INT32_MAX);
    return sb_cuda_call_launch(call, work);
}

/* Whether blocks of streams fold: rows with few splits, as a kernel of its own has more warps for many of them. To count costs a tenth of a
 * tile's time, and such a kernel 4 us and more (docs/results/2026-11-27-attention.md). Eight sequences of 16 splits take 95 us, 93 with such a
 * kernel, and beside a prompt 133 and 113 (docs/results/2026-11-29-queues.md). */
#define MOST_FOLDED_SPLITS 8
static bool can_streams_fold(const sb_call *call, const sb_cuda_attention_call *made, const sb_cuda_attention *p) {
    return p->splits <= MOST_FOLDED_SPLITS && sb_cuda_attention16_stream_has_words(call, made, p);
}

/* *folded: with splits apart, whether nobody has to fold them any more. */
static sb_status launch_share(sb_call *call, const sb_cuda_attention_call *made, sb_cuda_work *work, const plan *plan,
                              const share *share, bool *folded) {
    const sb_attention_work *a = &made->attention;
    sb_cuda_attention p = made->parameters;
    const way *way = &share->way;
    char module[48], kernel[64];
    /* How many splits are used the device knows: blocks that find none would each wait for room in a multiprocessor. */
    const int64_t most = way->at_once * sb_cuda_call_device(call)->multiprocessors;
    int64_t blocks = !way->streams || share->tiles < most ? share->tiles : most;
    if (share->is_split) {
        blocks = blocks < most / plan->splits ? blocks * plan->splits : most;
        p.splits = plan->splits;
    }
    p.more_than = share->more_than;
    p.up_to = share->up_to;
    p.row_tiles = up(p.group * a->queries, way->rows);
    if (way->warpgroups)
        return sb_cuda_attention16_prefill_run(call, &(sb_cuda_attention_call){*a, p, *work});
    /* Launched early, its blocks come to lie two on each multiprocessor that the product ahead has left idle. */
    work->apart = way->rows != SB_CUDA_ATTENTION16_ROWS;
    if (way->streams) {
        const bool alone = plan->count == 1 || !plan->shares[0].is_split; /* all parts are its own */
        *folded = share->is_split && alone && can_streams_fold(call, made, &p);
        return sb_cuda_attention16_stream_run(call, made, work, &p, way->width, blocks, *folded);
    }
    snprintf(module, sizeof module, "%s%s_%d_%s", way->family, a->pages.table != NULL ? "_paged" : "", way->width,
             sb_dtype_name(a->dtype));
    snprintf(kernel, sizeof kernel, "sb_cuda_%s%s", module, is_general(made) ? "_masked" : "");
    work->shared_bytes = way->shared_bytes;
    return launch_one(call, work, &p, module, kernel, blocks);
}

static sb_status launch_fold(sb_call *call, const sb_cuda_attention_call *made, sb_cuda_work *work, const plan *plan) {
    const sb_attention_work *a = &made->attention;
    sb_cuda_attention p = made->parameters;
    char module[48], kernel[64];
    p.splits = plan->splits;
    snprintf(module, sizeof module, "attention16_fold_%s", sb_dtype_name(a->dtype));
    snprintf(kernel, sizeof kernel, "sb_cuda_%s%s", module, a->pages.table != NULL ? "_paged" : "");
    work->shared_bytes = 0;
    work->apart = false;
    return launch_one(call, work, &p, module, kernel, a->batch * a->heads * plan->part_rows);
}

/* ---- few rows by clusters ---- */

/* Clusters that a device has at once: two blocks of threads fit a multiprocessor. */
static int64_t clusters_at_once(const sb_call *call) {
    return 2 * sb_cuda_call_device(call)->multiprocessors / SB_CUDA_ATTENTION16_FEW_BLOCKS;
}

/* Samples of clusters, which are with pages sequences; and tiles of their rows that have words to count splits in. */
static int64_t count_samples(const sb_attention_work *a) {
    return a->pages.table != NULL ? a->pages.sequences : a->batch;
}

static int64_t count_row_tiles(const sb_attention_work *a) {
    return count_samples(a) + a->heads / a->key_heads * a->queries / SB_CUDA_ATTENTION16_FEW_ROWS;
}

/* Whether no more than `rows` rows share keys; on average, where they are those of sequences. */
static bool share_few(const sb_attention_work *a, int64_t rows) {
    const int64_t sharers = a->pages.table != NULL ? a->pages.sequences : 1;
    return a->heads / a->key_heads * a->queries <= rows * sharers;
}

/* Whether clusters of four blocks can compute the work: they are told all rows that share keys in one go, which those of a sequence are
 * a few at a time, and count themselves in words of each that has several splits. */
static bool can_clusters(const sb_call *call, const sb_cuda_attention_call *made) {
    const sb_attention_work *a = &made->attention;
    const bool has_pages = a->pages.table != NULL;
    if (is_general(made) || sb_attention16_widest(a) > 128)
        return false;
    if (has_pages ? a->pages.rows < SB_CUDA_ATTENTION16_FEW_PAGE || a->pages.sequences < 1
                  : !share_few(a, SB_CUDA_ATTENTION16_FEW_ROWS))
        return false;
    return count_row_tiles(a) <= SB_CUDA_ARRIVALS / SB_CUDA_ATTENTION16_FEW_BLOCKS / a->key_heads &&
           (a->keys <= SB_ATTENTION_SPLIT || sb_cuda_call_queue(call)->arrivals != NULL);
}

/* Whether they are quicker, by what an H200 said (docs/results/2026-11-28-few.md): where each block has a multiprocessor for itself, and
 * with heads of up to 64 also where two share one, as most of the splits that there is room for may not be used. */
static bool are_clusters_quicker(const sb_call *call, const sb_attention_work *a) {
    const int64_t splits = up(a->keys, SB_ATTENTION_SPLIT), blocks = sb_cuda_call_device(call)->multiprocessors;
    const bool may_share = splits > 1 && sb_attention16_widest(a) <= 64;
    return share_few(a, SB_CUDA_ATTENTION16_FEW_ROWS) &&
           count_samples(a) * a->key_heads <= (may_share ? 2 : 1) * blocks / SB_CUDA_ATTENTION16_FEW_BLOCKS / splits;
}

static bool takes_clusters(const sb_call *call, const sb_cuda_attention_call *made) {
    const int choice = atomic_load_explicit(&sb_cuda_call_device(call)->attention, memory_order_relaxed);
    if (choice == SB_CUDA_ATTENTION_TILES || choice == SB_CUDA_ATTENTION_STREAMS || !can_clusters(call, made))
        return false;
    return choice == SB_CUDA_ATTENTION_CLUSTERS || are_clusters_quicker(call, &made->attention);
}

static sb_status launch_clusters(sb_call *call, sb_cuda_attention_call *made) {
    const sb_attention_work *a = &made->attention;
    sb_cuda_attention16_few p = {.arrived = NULL};
    sb_cuda_work work = made->work;
    const int width = sb_attention16_width(a);
    const bool has_pages = a->pages.table != NULL;
    const int64_t tiles = count_samples(a) * a->key_heads, splits = up(a->keys, SB_ATTENTION_SPLIT);
    const int64_t most = clusters_at_once(call);
    char module[48], kernel[64];
    if (splits > 1) {
        const plan plan = {.splits = splits, .part_rows = a->queries, .parts_up_to = INT64_MAX};
        uint32_t *arrivals = sb_cuda_call_queue(call)->arrivals;
        SB_TRY(make_room(call, made, &work, &plan));
        p.arrived = arrivals;
        sb_cuda_work_touches(&work, arrivals, SB_CUDA_ARRIVALS * sizeof *arrivals, true);
    }
    p.attention = made->parameters;
    p.attention.splits = splits;
    p.by_key_heads = sb_cuda_divisor_of((uint32_t)a->key_heads);
    p.by_samples = sb_cuda_divisor_of((uint32_t)count_samples(a));
    p.by_group = sb_cuda_divisor_of((uint32_t)(a->heads / a->key_heads));
    p.by_page = sb_cuda_divisor_of((uint32_t)(has_pages ? a->pages.rows : 1));
    p.left = sb_attention16_held(p.attention.left);
    p.right = sb_attention16_held(p.attention.right);
    snprintf(module, sizeof module, "attention16_few%s_%d_%s", has_pages ? "_paged" : "", width,
             sb_dtype_name(a->dtype));
    snprintf(kernel, sizeof kernel, "sb_cuda_%s", module);
    work.apart = true; /* as in launch_share */
    work.join = sb_cuda_attention16_join_append;
    work.module = module;
    work.kernel = kernel;
    work.parameters = &p;
    work.parameter_bytes = sizeof p;
    work.threads = SB_CUDA_ATTENTION16_FEW_THREADS;
    work.shared_bytes = (unsigned)SB_CUDA_ATTENTION16_FEW_SHARED(width);
    work.blocks =
        SB_CUDA_ATTENTION16_FEW_BLOCKS * (unsigned)(tiles > most / splits ? (most > 0 ? most : 1) : tiles * splits);
    return sb_cuda_call_launch(call, &work);
}

/* ---- few rows by TMA ---- */

/* Whether they are quicker: where rows are few for each head of keys, so that tiles of 8 of them read keys as seldom as others (beside
 * prompts those of sequences with a single row), and where there are several splits, heads are wide, or tiles are so many that they keep
 * the ring full. */
static bool are_streams_quicker(const sb_call *call, const sb_attention_work *a) {
    const bool are_few = is_mixed(a) ? a->heads / a->key_heads <= SB_CUDA_ATTENTION16_STREAM_ROWS
                                     : share_few(a, SB_CUDA_ATTENTION16_STREAM_ROWS);
    return are_few && (a->keys > SB_ATTENTION_SPLIT || sb_attention16_widest(a) > 128 ||
                       count_samples(a) * a->key_heads > sb_cuda_call_device(call)->multiprocessors);
}

static bool takes_streams(const sb_call *call, const sb_cuda_attention_call *made) {
    const int choice = atomic_load_explicit(&sb_cuda_call_device(call)->attention, memory_order_relaxed);
    if (choice == SB_CUDA_ATTENTION_TILES || choice == SB_CUDA_ATTENTION_CLUSTERS ||
        sb_cuda_attention16_refuses_stream(made) != NULL)
        return false;
    return choice == SB_CUDA_ATTENTION_STREAMS || are_streams_quicker(call, &made->attention);
}

sb_status sb_cuda_attention16_run(sb_call *call, sb_cuda_attention_call *made, bool *given) {
    const sb_attention_work *a = &made->attention;
    call->way = (sb_call_way){"rows one by one", obstacle(call, made)};
    *given = call->way.why == NULL;
    if (!*given)
        return SB_OK;
    const bool warpgroups = takes_warpgroups(call, made), has_pages = a->pages.table != NULL;
    if (takes_clusters(call, made)) {
        call->way.name = "tensor cores, 8 rows at a time by clusters";
        return launch_clusters(call, made);
    }
    int64_t widest = sb_attention16_widest(a);
    int64_t multiprocessors = sb_cuda_call_device(call)->multiprocessors;
    bool streams = takes_streams(call, made);
    plan plan = has_pages ? plan_sequences(a, streams, warpgroups, widest, multiprocessors)
                          : plan_samples(a, streams, warpgroups, widest, multiprocessors);
    sb_cuda_work work = made->work;
    if (has_pages)
        find_page_lines(a, &made->parameters.page_lines);
    if (plan.part_rows > 0)
        SB_TRY(make_room(call, made, &work, &plan));
    call->way.name = plan.name;
    bool folded = false;
    for (int i = 0; i < plan.count; i++)
        SB_TRY(launch_share(call, made, &work, &plan, &plan.shares[i], &folded));
    return plan.part_rows > 0 && !folded ? launch_fold(call, made, &work, &plan) : SB_OK;
}
