/* Hopper's barriers in shared memory, its copies between global and shared memory, and what threads write themselves
 * for these to read. hopper.cuh says what each instruction does; the PTX ISA, what the rest of this does:
 *
 *   - A phase of a barrier ends when all arrivals and all expected bytes have come, and the next one begins.
 *   - A copy to shared memory may write from its beginning to its end. So its place is full of NaNs as soon as it has
 *     begun, and its bytes come when the schedule says, perhaps in parts.
 *   - A copy from shared memory may read until it is waited for, and does, if the schedule says so.
 *   - What threads write is known to copies and products only behind the thread's own fence, and is written there. */
#include "host_engines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/driver/driver_types.h"
#include "fake_tensor_map.h"

/* ---- shared memory ---- */

void *host_static_shared(const char *name, uint32_t bytes) {
    host_block *block = host_current()->block;
    uint32_t first = HOST_STATIC_SHARED;
    for (unsigned i = 0; i < HOST_MOST_SHARED; i++) {
        if (block->pieces[i].name == NULL) {
            block->pieces[i].name = name;
            block->pieces[i].first = first;
            block->pieces[i].bytes = bytes;
            if (first + bytes > HOST_DYNAMIC_SHARED)
                host_refuse("more static shared memory than the host has room for");
        }
        if (strcmp(block->pieces[i].name, name) == 0)
            return block->shared + block->pieces[i].first;
        first = (block->pieces[i].first + block->pieces[i].bytes + 63) / 64 * 64;
    }
    host_refuse("more pieces of static shared memory than the host has room for");
}

unsigned char *host_dynamic_shared_memory(void) {
    return (unsigned char *)host_current()->block->shared + HOST_DYNAMIC_SHARED;
}

uint32_t host_shared_address(const void *pointer) {
    return (uint32_t)((const char *)pointer - host_current()->block->shared);
}

char *host_dynamic_shared(const host_block *block, uint32_t address, uint32_t bytes) {
    if (address < HOST_DYNAMIC_SHARED || address > block->shared_end || block->shared_end - address < bytes)
        host_refuse("%u bytes at %u of shared memory are not inside the dynamic %u to %u", bytes, address,
                    HOST_DYNAMIC_SHARED, block->shared_end);
    return block->shared + address;
}

/* ---- barriers ---- */

#define MARK 0x2bad

typedef struct barrier {
    uint64_t phase : 1, known : 1, mark : 14, count : 12, pending : 12;
    int64_t bytes : 24;
} barrier;
_Static_assert(sizeof(barrier) == 8, "as on the device");

/* How often each barrier's phases have ended, by its address. */
static unsigned ended[HOST_MOST_BLOCKS][HOST_DYNAMIC_SHARED / 8];
static host_rings rings;

host_rings host_last_rings(void) {
    return rings;
}

/* The piece that the address is in; NULL if there is none. */
static const char *piece_at(const host_block *block, uint32_t address, uint32_t *index, uint32_t *count) {
    for (unsigned i = 0; i < HOST_MOST_SHARED && block->pieces[i].name != NULL; i++) {
        uint32_t inside = address - block->pieces[i].first;
        if (inside < block->pieces[i].bytes) {
            *index = inside / 8;
            *count = block->pieces[i].bytes / 8;
            return block->pieces[i].name;
        }
    }
    return NULL;
}

static bool is_of(uint32_t address, const char *name) {
    uint32_t index, count;
    const char *piece = piece_at(host_current()->block, address, &index, &count);
    return piece != NULL && strcmp(piece, name) == 0;
}

static barrier *barrier_at(const host_block *block, uint32_t address) {
    uint32_t index, count;
    if (address % 8 != 0 || piece_at(block, address, &index, &count) == NULL)
        host_refuse("there is no barrier at %u of block %u", address, block->index);
    barrier *found = (barrier *)(void *)(block->shared + address);
    if (found->mark != MARK)
        host_refuse("%s[%u] of block %u is no barrier yet", piece_at(block, address, &index, &count), index,
                    block->index);
    return found;
}

static void end_phase_if_complete(const host_block *block, barrier *barrier) {
    if (barrier->pending == 0 && barrier->bytes == 0) {
        ended[block->rank][((char *)barrier - block->shared) / 8]++;
        barrier->phase ^= 1;
        barrier->pending = barrier->count;
        host_wake_watching();
    }
}

static void arrive(const host_block *block, uint32_t address) {
    barrier *barrier = barrier_at(block, address);
    if (barrier->pending == 0)
        host_refuse("more arrive at the barrier at %u of block %u than its phase waits for", address, block->index);
    barrier->pending--;
    end_phase_if_complete(block, barrier);
}

static bool has_ended(const host_condition *condition) {
    return barrier_at(condition->object, condition->place)->phase != condition->value;
}

static void describe_barrier(const host_condition *condition, char *text, size_t bytes) {
    uint32_t index, count;
    const host_block *block = condition->object;
    const barrier *barrier = barrier_at(block, condition->place);
    const char *name = piece_at(block, condition->place, &index, &count);
    snprintf(text, bytes, "%s[%u], phase %u to end; in phase %u, %u of %u arrivals and %d bytes are missing", name,
             index, (unsigned)condition->value, (unsigned)barrier->phase, (unsigned)barrier->pending,
             (unsigned)barrier->count, (int)barrier->bytes);
}

/* ---- threads ---- */

enum { MOST_WRITES = 256, MOST_INITS = 8 };

/* What a thread has begun and made nothing known of. */
typedef struct actions {
    struct {
        uint32_t address, words[4];
    } writes[MOST_WRITES];
    unsigned write_count;
    uint32_t inits[MOST_INITS];
    unsigned init_count, cluster_meetings;
    unsigned batches, in_batch;    /* of stores: those ended, and how many are begun behind these */
    uint32_t read_first, read_end; /* what its reads without a fence behind them span */
    uint64_t arrived; /* the cluster's meetings before that which the thread has come to, and not waited for */
} actions;
static actions all_actions[HOST_MOST_THREADS];
static host_meeting cluster_meeting;

static actions *current_actions(void) {
    return &all_actions[host_current_number()];
}

void host_barrier_init(uint32_t address, uint32_t count) {
    host_block *block = host_current()->block;
    actions *own = current_actions();
    uint32_t index, pieces;
    if (address % 8 != 0 || piece_at(block, address, &index, &pieces) == NULL || own->init_count == MOST_INITS)
        host_refuse("a barrier cannot be made at %u", address);
    count += (host_planted == HOST_PLANT_EMPTY_COUNT && is_of(address, "empty_barriers")) ||
             (host_planted == HOST_PLANT_FULL_COUNT && is_of(address, "full_barriers"));
    *(barrier *)(void *)(block->shared + address) = (barrier){.mark = MARK, .count = count, .pending = count};
    own->inits[own->init_count++] = address;
    host_wake_watching();
}

void host_barrier_init_done(void) {
    actions *own = current_actions();
    for (unsigned i = 0; i < own->init_count && host_planted != HOST_PLANT_NO_INIT_FENCE; i++)
        barrier_at(host_current()->block, own->inits[i])->known = 1;
    own->init_count = 0;
}

void host_barrier_expect(uint32_t address, uint32_t bytes) {
    barrier *barrier = barrier_at(host_current()->block, address);
    bytes = host_planted == HOST_PLANT_EXPECT_LESS ? bytes - 128 : bytes;
    bytes = host_planted == HOST_PLANT_EXPECT_MORE ? bytes + 128 : bytes;
    barrier->bytes += bytes;
    arrive(host_current()->block, address);
}

static void release(host_block *block, uint32_t address) {
    uint32_t index, count;
    bool frees = is_of(address, "empty_barriers");
    if (host_planted == HOST_PLANT_NO_RELEASE && frees)
        return;
    if (host_planted == HOST_PLANT_RELEASE_NEXT && frees) {
        piece_at(block, address, &index, &count);
        address = index + 1 < count && ((barrier *)(void *)(block->shared + address + 8))->mark == MARK
                      ? address + 8
                      : address - 8 * index;
    }
    arrive(block, address);
    if (host_planted == HOST_PLANT_RELEASE_TWICE && frees)
        arrive(block, address);
}

void host_barrier_arrive(uint32_t address) {
    release(host_current()->block, address);
}

void host_barrier_arrive_at(uint32_t address, uint32_t rank) {
    if (host_planted == HOST_PLANT_RELEASE_OWN && rank != host_current()->block->rank)
        return;
    if (rank >= host_cluster_size() || host_block_of(rank)->threads == 0)
        host_refuse("it arrives at a barrier of block %u of the cluster, which is not there", rank);
    release(host_block_of(rank), address);
}

void host_barrier_wait(uint32_t address, uint32_t parity) {
    bool full = is_of(address, "full_barriers"), empty = is_of(address, "empty_barriers");
    if ((full && host_planted == HOST_PLANT_NO_FULL_WAIT) || (empty && host_planted == HOST_PLANT_NO_EMPTY_WAIT))
        return;
    parity ^= (full && host_planted == HOST_PLANT_FULL_PARITY) || (empty && host_planted == HOST_PLANT_EMPTY_PARITY);
    parity = full && host_planted == HOST_PLANT_FULL_PARITY_STAYS ? 0 : parity;
    parity = empty && host_planted == HOST_PLANT_EMPTY_PARITY_STAYS ? 1 : parity;
    const host_condition ended = {has_ended, describe_barrier, host_current()->block, parity, address};
    host_wait(&ended);
}

uint32_t host_cluster_rank(void) {
    return host_current()->block->rank;
}

void host_cluster_sync(void) {
    unsigned meeting = current_actions()->cluster_meetings++;
    if (host_planted == (meeting == 0 ? HOST_PLANT_NO_CLUSTER_BEGIN : HOST_PLANT_NO_CLUSTER_END))
        return;
    host_meet(&cluster_meeting, host_cluster_size() * blockDim.x, HOST_CLUSTER);
}

void host_cluster_arrive(void) {
    current_actions()->arrived = cluster_meeting.times;
    if (++cluster_meeting.arrived < host_cluster_size() * blockDim.x)
        return;
    cluster_meeting.arrived = 0;
    cluster_meeting.times++;
    host_wake_watching();
}

static bool has_cluster_met(const host_condition *condition) {
    return cluster_meeting.times > condition->value;
}

static void describe_cluster(const host_condition *condition, char *text, size_t bytes) {
    snprintf(text, bytes, "the cluster's barrier for the %llu. time, where %u are",
             (unsigned long long)condition->value + 1, cluster_meeting.arrived);
}

void host_cluster_wait(void) {
    const host_condition met = {has_cluster_met, describe_cluster, NULL, current_actions()->arrived, 0};
    host_wait(&met);
}

/* The bytes have come as soon as they are sent: whatever is read before the barrier says so is what was there. */
static void send(uint32_t shared, uint32_t rank, const void *words, uint32_t bytes, uint32_t address) {
    host_block *block = host_block_of(rank);
    barrier *told = barrier_at(block, address);
    memcpy(host_dynamic_shared(block, shared, bytes), words, bytes);
    told->bytes -= bytes;
    end_phase_if_complete(block, told);
}

void host_cluster_send(uint32_t shared, uint32_t rank, float value, uint32_t barrier) {
    send(shared, rank, &value, sizeof value, barrier);
}

void host_cluster_send_two(uint32_t shared, uint32_t rank, float first, float second, uint32_t barrier) {
    const float both[2] = {first, second};
    send(shared, rank, both, sizeof both, barrier);
}

void host_cluster_store_long(uint32_t shared, uint32_t rank, uint64_t value) {
    memcpy(host_dynamic_shared(host_block_of(rank), shared, sizeof value), &value, sizeof value);
}

uint32_t host_cluster_load(uint32_t shared, uint32_t rank) {
    uint32_t value;
    memcpy(&value, host_dynamic_shared(host_block_of(rank), shared, sizeof value), sizeof value);
    return value;
}

uint32_t host_cluster_add(uint32_t shared, uint32_t rank, uint32_t number) {
    const uint32_t before = host_cluster_load(shared, rank), after = before + number;
    memcpy(host_dynamic_shared(host_block_of(rank), shared, sizeof after), &after, sizeof after);
    return before;
}

void host_warpgroup_sync(int number) {
    if (number < 1 || number >= HOST_NAMED_BARRIERS)
        host_refuse("there is no barrier %d for a warpgroup", number);
    if (host_planted != HOST_PLANT_NO_GROUP_SYNC)
        host_meet(&host_current()->block->named[number], 128, HOST_NAMED);
}

void host_sync_warp(void) {
    host_meet_warp();
}

/* ---- what threads write ---- */

static void write_later(uint32_t address, const uint32_t words[4]) {
    actions *own = current_actions();
    if (own->write_count == MOST_WRITES || address % 16 != 0)
        host_refuse("it writes to %u of shared memory, as number %u without a fence", address, own->write_count + 1);
    host_dynamic_shared(host_current()->block, address, 16);
    own->writes[own->write_count].address = address;
    memcpy(own->writes[own->write_count++].words, words, 16);
}

void host_shared_written(void) {
    actions *own = current_actions();
    if (host_planted == HOST_PLANT_NO_WRITTEN_FENCE)
        return;
    for (unsigned i = 0; i < own->write_count; i++)
        memcpy(host_dynamic_shared(host_current()->block, own->writes[i].address, 16), own->writes[i].words, 16);
    own->write_count = own->read_end = 0;
}

/* What a thread of the warp wrote last there and has not made known to copies yet; NULL: nothing. */
static uint32_t *unfenced_of_warp(uint32_t address, actions **writer, unsigned *index) {
    unsigned self = host_current_number(), warp = self - self % 32;
    for (unsigned thread = warp; thread < warp + 32; thread++) {
        actions *of = &all_actions[thread];
        for (unsigned i = 0; i < of->write_count; i++) {
            if (of->writes[i].address == address) {
                *writer = of;
                *index = i;
                return of->writes[i].words;
            }
        }
    }
    return NULL;
}

void host_shared_load_eight(uint32_t address, uint32_t *words) {
    actions *writer;
    unsigned index;
    const uint32_t *fresh = unfenced_of_warp(address, &writer, &index);
    memcpy(words, fresh != NULL ? (const void *)fresh : host_dynamic_shared(host_current()->block, address, 16), 16);
}

/* Comes behind what the warp wrote there before, whoever's fence is the first. */
void host_shared_store_eight(uint32_t address, const uint32_t *words) {
    actions *writer;
    unsigned index;
    while (unfenced_of_warp(address, &writer, &index) != NULL)
        writer->writes[index] = writer->writes[--writer->write_count];
    write_later(address, words);
}

/* Of what a copy has brought, which the next one may overwrite before a device has read it: a fence has to come between. */
void host_shared_load_two(uint32_t address, float *values) {
    actions *own = current_actions();
    memcpy(values, host_dynamic_shared(host_current()->block, address, 8), 8);
    if (own->read_end == 0 || address < own->read_first)
        own->read_first = address;
    if (address + 8 > own->read_end)
        own->read_end = address + 8;
}

static void refuse_unread(const host_block *block, uint32_t shared, uint32_t bytes) {
    for (unsigned i = 0; i < blockDim.x; i++) {
        const actions *of = &all_actions[block->rank * blockDim.x + i];
        if (of->read_end > shared && of->read_first < shared + bytes)
            host_refuse("it copies to %u of shared memory, where thread %u has read without a fence since", shared, i);
    }
}

/* With what others of the warp have written to the same 16 bytes. */
void host_shared_store_two(uint32_t address, float one, float other) {
    const float values[2] = {one, other};
    uint32_t words[4], piece = address / 16 * 16;
    if (address % 8 != 0)
        host_refuse("it writes eight bytes to %u of shared memory", address);
    host_shared_load_eight(piece, words);
    memcpy((char *)words + address % 16, values, sizeof values);
    host_shared_store_eight(piece, words);
}

void host_shared_clear(uint32_t address) {
    static const uint32_t zeros[4];
    if (host_planted != HOST_PLANT_NO_CLEARING)
        write_later(address + (host_planted == HOST_PLANT_CLEARING_PLACE ? 128 : 0), zeros);
}

void host_shared_keep(uint32_t address, int count) {
    uint16_t elements[8];
    uint32_t words[4];
    if (host_planted == HOST_PLANT_NO_CLEARING)
        return;
    memcpy(elements, host_dynamic_shared(host_current()->block, address, 16), sizeof elements);
    for (int i = 0; i < 8; i++)
        elements[i] = i < count ? elements[i] : 0;
    memcpy(words, elements, sizeof words);
    write_later(address, words);
}

/* Lane 8 i + r gives the address of row r of matrix i; lane 4 r + c has elements 2 c and 2 c + 1 of that row, or with `turned`
 * of that column. */
static void store_matrices(uint32_t address, const uint32_t own[4], bool turned) {
    static uint32_t given[HOST_MOST_THREADS][4];
    unsigned self = host_current_number(), lane = self % 32, warp = self - lane, line = lane % 8, matrix = lane / 8;
    uint32_t words[4];
    host_meet_warp(); /* the one before has been read */
    memcpy(given[self], own, sizeof given[self]);
    host_meet_warp();
    for (unsigned i = 0; i < 4; i++) {
        uint32_t first = given[warp + 8 * i + line / 2][matrix] >> 16 * (line % 2) & 0xffff,
                 second = given[warp + 8 * i + 4 + line / 2][matrix] >> 16 * (line % 2) & 0xffff;
        words[i] = turned ? first | second << 16 : given[warp + line * 4 + i][matrix];
    }
    address += host_planted == HOST_PLANT_RESULT_PLACE ? 128 : 0;
    write_later(host_planted == HOST_PLANT_RESULT_SWIZZLE ? host_swizzle_128(address) : address, words);
}

void host_store_matrices(uint32_t address, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    store_matrices(address, (const uint32_t[]){a, b, c, d}, false);
}

void host_store_turned_matrices(uint32_t address, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    store_matrices(address, (const uint32_t[]){a, b, c, d}, true);
}

/* ---- copies ---- */

typedef struct copy {
    fake_tensor_map map;
    const char *linear; /* bytes that lie side by side on both sides, by no map; else NULL */
    bool is_store;
    int at[5], further[2]; /* the latter of pixels */
    host_block *block;     /* whose shared memory it is */
    uint32_t shared, barrier;
    unsigned thread, batch; /* of a store */
    unsigned rows, done;    /* of 128 bytes */
    uint64_t ticket;
} copy;

/* In the order in which they were begun. */
static struct {
    copy *copies;
    unsigned count, room;
} flying;

static void do_rows(copy *copy, unsigned count);

static const fake_tensor_map *read_map(const void *given, unsigned rank, bool is_pixels) {
    const fake_tensor_map *map = given;
    if ((uintptr_t)given % 64 != 0 || map->mark != FAKE_TENSOR_MAP_MARK || map->rank != rank ||
        map->is_pixels != is_pixels)
        host_refuse("there is no tensor map of rank %u%s", rank, is_pixels ? " of pixels" : "");
    if (map->swizzle != CU_TENSOR_MAP_SWIZZLE_128B || map->box[0] != 64)
        host_refuse("a tensor map has boxes of %u elements and swizzle %d: the host knows those of 128 bytes alone",
                    map->box[0], map->swizzle);
    return map;
}

static void drop(unsigned i) {
    flying.count--;
    memmove(&flying.copies[i], &flying.copies[i + 1], (flying.count - i) * sizeof flying.copies[0]);
    host_wake_watching(); /* whoever waits for stores */
}

static void begin_copy(const copy *begun, bool prompt) {
    if (flying.count == flying.room) {
        flying.room = 2 * flying.room + 64;
        flying.copies = realloc(flying.copies, flying.room * sizeof flying.copies[0]);
        if (flying.copies == NULL)
            abort();
    }
    flying.copies[flying.count] = *begun;
    flying.copies[flying.count].ticket = host_next_ticket();
    if (prompt)
        do_rows(&flying.copies[flying.count], begun->rows);
    else
        flying.count++;
}

static unsigned rows_of(const fake_tensor_map *map) {
    unsigned rows = 1;
    if (map->is_pixels)
        return map->pixels;
    for (unsigned d = 1; d < map->rank; d++)
        rows *= map->box[d];
    return rows;
}

static void load_further(uint32_t shared, const void *given, unsigned rank, uint32_t barrier, const int at[5],
                         const int *further, unsigned blocks) {
    const fake_tensor_map *map = read_map(given, rank, further != NULL);
    shared += host_planted == HOST_PLANT_LOAD_PLACE ? 1024 : 0;
    copy begun = {.map = *map, .shared = shared, .barrier = barrier, .rows = rows_of(map)};
    if (further != NULL)
        memcpy(begun.further, further, sizeof begun.further);
    memcpy(begun.at, at, sizeof begun.at);
    begun.at[0] += host_planted == HOST_PLANT_LOAD_X;
    begun.at[1] += host_planted == HOST_PLANT_LOAD_Y;
    begun.at[2] += host_planted == HOST_PLANT_LOAD_Z;
    begun.at[rank - 1] -= host_planted == HOST_PLANT_LOAD_BATCH;
    if (shared % 128 != 0)
        host_refuse("a copy begins at %u of shared memory, which is no multiple of 128", shared);
    if (host_planted == HOST_PLANT_MULTICAST_ONE)
        blocks = 1u << host_current()->block->rank;
    for (unsigned rank_of = 0; blocks >> rank_of != 0; rank_of++) {
        if ((blocks >> rank_of & 1) == 0)
            continue;
        begun.block = host_block_of(rank_of);
        if (rank_of >= host_cluster_size())
            host_refuse("a copy is for block %u of the cluster, which is not there", rank_of);
        refuse_unread(begun.block, shared, begun.rows * 128);
        memset(host_dynamic_shared(begun.block, shared, begun.rows * 128), HOST_POISON, begun.rows * 128);
        begin_copy(&begun, host_now.prompt_loads);
    }
}

static void load(uint32_t shared, const void *given, unsigned rank, uint32_t barrier, const int at[5],
                 unsigned blocks) {
    load_further(shared, given, rank, barrier, at, NULL, blocks);
}

/* One by one the 16 bytes of a row, as they are swizzled. */
static char *piece_of(const copy *copy, unsigned row, unsigned piece) {
    uint32_t address = copy->shared + row * 128 + piece * 16;
    if (host_planted != HOST_PLANT_LOAD_SWIZZLE || copy->is_store)
        address = host_swizzle_128(address);
    return host_dynamic_shared(copy->block, address, 16);
}

/* The address of pixel `row`'s first element: pixels are counted from the first one along the width in its strides, up to
 * the upper corner, then from the lower corner of the next line on, and so on. */
static bool pixel_address(const copy *copy, unsigned row, char **address) {
    const fake_tensor_map *map = &copy->map;
    int64_t place[3] = {copy->at[1], copy->at[2], copy->at[3]}, offset = (int64_t)copy->at[0] * 2;
    for (; row > 0; row--) {
        place[0] += map->element_strides[0];
        for (int d = 0; d < 2 && place[d] > (int64_t)map->extents[d + 1] - 1 + map->upper[d]; d++) {
            place[d] = map->lower[d];
            place[d + 1] += d == 0 ? map->element_strides[1] : 1;
        }
    }
    for (int d = 0; d < 3; d++) {
        int64_t read = place[d] + (d < 2 ? copy->further[d] : 0);
        if (read < 0 || read >= (int64_t)map->extents[d + 1])
            return false;
        offset += read * (int64_t)map->strides[d];
    }
    *address = (char *)(uintptr_t)map->address + offset;
    return true;
}

/* The address of a row's first element; false where the tensor has no such row. */
static bool row_address(const copy *copy, unsigned row, char **address) {
    int64_t offset = (int64_t)copy->at[0] * 2;
    if (copy->map.is_pixels)
        return pixel_address(copy, row, address);
    for (unsigned d = 1; d < copy->map.rank; d++) {
        int64_t place = copy->at[d] + (int64_t)(row % copy->map.box[d]);
        row /= copy->map.box[d];
        if (place < 0 || place >= (int64_t)copy->map.extents[d])
            return false;
        offset += place * (int64_t)copy->map.strides[d - 1];
    }
    *address = (char *)(uintptr_t)copy->map.address + offset;
    return true;
}

static void load_row(const copy *copy, unsigned row) {
    char *from = NULL;
    if (copy->linear != NULL) {
        memcpy(host_dynamic_shared(copy->block, copy->shared + row * 128, 128), copy->linear + row * 128, 128);
        return;
    }
    bool inside = row_address(copy, row, &from);
    rings.filled += !inside && !copy->map.is_pixels;
    for (unsigned piece = 0; piece < 8; piece++) {
        uint16_t elements[8];
        for (unsigned i = 0; i < 8; i++) {
            int64_t x = copy->at[0] + (int64_t)(piece * 8 + i);
            elements[i] = 0;
            if (inside && x >= 0 && x < (int64_t)copy->map.extents[0])
                memcpy(&elements[i], from + (piece * 8 + i) * 2, 2);
        }
        memcpy(piece_of(copy, row, piece), elements, 16);
    }
}

/* 16 bytes at once, also where the row ends in between. */
static void store_row(const copy *copy, unsigned row) {
    char *to;
    if (!row_address(copy, row, &to))
        return;
    for (unsigned piece = 0; piece < 8; piece++) {
        int64_t x = copy->at[0] + (int64_t)(piece * 8);
        if (x >= 0 && x < (int64_t)copy->map.extents[0])
            memcpy(to + piece * 16, piece_of(copy, row, piece), 16);
    }
}

/* The next rows of a copy. */
static void do_rows(copy *copy, unsigned count) {
    if (!copy->is_store && copy->block->threads == 0)
        host_refuse("a copy arrives in block %u, which has ended", copy->block->index);
    for (unsigned i = 0; i < count; i++, copy->done++) {
        if (copy->is_store)
            store_row(copy, copy->done);
        else
            load_row(copy, copy->done);
    }
    if (copy->is_store)
        return;
    barrier *barrier = barrier_at(copy->block, copy->barrier);
    if (!barrier->known)
        host_refuse("a copy arrives at a barrier that was not made known to the copy engine");
    barrier->bytes -= count * 128;
    end_phase_if_complete(copy->block, barrier);
}

/* Stores of a thread happen one after the other. */
static bool is_first_of_thread(unsigned index) {
    const copy *copy = &flying.copies[index];
    for (unsigned i = 0; i < index && copy->is_store; i++) {
        if (flying.copies[i].is_store && flying.copies[i].thread == copy->thread)
            return false;
    }
    return true;
}

static unsigned index_of_ready(unsigned number) {
    for (unsigned i = 0; i < flying.count; i++) {
        if (is_first_of_thread(i) && number-- == 0)
            return i;
    }
    return flying.count;
}

uint64_t host_copy_ticket(unsigned i) {
    unsigned index = index_of_ready(i);
    return index < flying.count ? flying.copies[index].ticket : HOST_NO_WORK;
}

void host_do_copy(unsigned i) {
    unsigned index = index_of_ready(i);
    copy *copy = &flying.copies[index];
    unsigned left = copy->rows - copy->done;
    do_rows(copy, host_now.partial_loads && !copy->is_store && left > 1 ? 1 + host_random(left) : left);
    if (copy->done == copy->rows)
        drop(index);
}

#define AT(...)                                                                                                        \
    (const int[5]) {                                                                                                   \
        __VA_ARGS__                                                                                                    \
    }
#define OWN_BLOCK (1u << host_current()->block->rank)

void host_tensor_map_prefetch(const void *map) {
    const fake_tensor_map *known = map;
    read_map(map, known->rank, known->is_pixels != 0);
}

uint64_t host_streaming_policy(void) {
    return 0;
}

void host_tensor_load(uint32_t shared, const void *map, uint32_t barrier, int x, int y, int z, int w) {
    load(shared, map, 4, barrier, AT(x, y, z, w), OWN_BLOCK);
}

void host_bulk_load(uint32_t shared, const void *from, uint32_t bytes, uint32_t barrier) {
    shared += host_planted == HOST_PLANT_LOAD_PLACE ? 1024 : 0;
    copy begun = {.linear = (const char *)from + (host_planted == HOST_PLANT_LOAD_X ? 2 : 0),
                  .block = host_current()->block,
                  .shared = shared,
                  .barrier = barrier,
                  .rows = bytes / 128};
    if (shared % 16 != 0 || (uintptr_t)from % 16 != 0 || bytes % 128 != 0)
        host_refuse("a bulk copy of %u bytes to %u of shared memory: the host knows multiples of 128, to and from 16",
                    bytes, shared);
    memset(host_dynamic_shared(begun.block, shared, bytes), HOST_POISON, bytes);
    begin_copy(&begun, host_now.prompt_loads);
}

void host_tensor_stream(uint32_t shared, const void *map, uint32_t barrier, int x, int y, int z, int w,
                        uint64_t policy) {
    host_tensor_load(shared, map, barrier, x, y, z, w);
}

void host_tensor_load_pixels(uint32_t shared, const void *map, uint32_t barrier, int x, int y, int z, int w,
                             int further_y, int further_z) {
    const fake_tensor_map *known = map;
    if (further_y < 0 || further_y > 255 || further_z < 0 || further_z > 255)
        host_refuse("a copy of pixels is to read %d and %d further, which eight bits do not hold", further_y,
                    further_z);
    /* Where the device would begin is not said of a first pixel that is not one of the map's. */
    for (int d = 0; d < 2; d++) {
        int64_t at = d == 0 ? y : z;
        if (at < known->lower[d] || at > (int64_t)known->extents[d + 1] - 1 + known->upper[d] ||
            (at - known->lower[d]) % known->element_strides[d] != 0)
            host_refuse("a copy of pixels begins at %d, %d, where the map has none", y, z);
    }
    load_further(shared, map, 4, barrier, AT(x, y, z, w), (const int[2]){further_y, further_z}, OWN_BLOCK);
}

void host_tensor_load_all(uint32_t shared, const void *map, uint32_t barrier, int x, int y, int z, int w,
                          uint16_t blocks) {
    load(shared, map, 4, barrier, AT(x, y, z, w), blocks);
}

void host_tensor_load_five(uint32_t shared, const void *map, uint32_t barrier, int x, int y, int z, int w, int v) {
    load(shared, map, 5, barrier, AT(x, y, z, w, v), OWN_BLOCK);
}

void host_tensor_stream_five(uint32_t shared, const void *map, uint32_t barrier, int x, int y, int z, int w, int v,
                             uint64_t policy) {
    host_tensor_load_five(shared, map, barrier, x, y, z, w, v);
}

void host_tensor_load_five_all(uint32_t shared, const void *map, uint32_t barrier, int x, int y, int z, int w, int v,
                               uint16_t blocks) {
    load(shared, map, 5, barrier, AT(x, y, z, w, v), blocks);
}

/* The second-level cache is not emulated. */
void host_tensor_ask(const void *map, int x, int y, int z, int w, uint64_t policy) {
    read_map(map, 4, false);
}

void host_tensor_ask_five(const void *map, int x, int y, int z, int w, int v, uint64_t policy) {
    read_map(map, 5, false);
}

void host_tensor_store(const void *given, uint32_t shared, int x, int y, int z, int w) {
    const fake_tensor_map *map = read_map(given, 4, false);
    actions *own = current_actions();
    copy begun = {.map = *map,
                  .is_store = true,
                  .at = {x + (host_planted == HOST_PLANT_STORE_X), y + (host_planted == HOST_PLANT_STORE_Y), z, w},
                  .block = host_current()->block,
                  .shared = shared,
                  .thread = host_current_number(),
                  .batch = own->batches,
                  .rows = rows_of(map)};
    if (shared % 128 != 0)
        host_refuse("a store begins at %u of shared memory, which is no multiple of 128", shared);
    host_dynamic_shared(begun.block, shared, begun.rows * 128);
    own->in_batch++;
    rings.stored++;
    begin_copy(&begun, host_now.prompt_stores);
}

void host_tensor_stores_end(void) {
    current_actions()->batches++;
    current_actions()->in_batch = 0;
}

/* Whether all of a thread's batches before `value` have been read; `place` is the thread. */
static bool are_read(const host_condition *condition) {
    for (unsigned i = 0; i < flying.count; i++) {
        const copy *copy = &flying.copies[i];
        if (copy->is_store && copy->thread == condition->place && copy->batch < condition->value)
            return false;
    }
    return true;
}

static void describe_stores(const host_condition *condition, char *text, size_t bytes) {
    snprintf(text, bytes, "its first %u batches of stores", (unsigned)condition->value);
}

void host_tensor_stores_read(unsigned left) {
    unsigned batches = current_actions()->batches;
    const host_condition read = {are_read, describe_stores, NULL, batches > left ? batches - left : 0,
                                 host_current_number()};
    if (host_planted != (left > 0 ? HOST_PLANT_NO_STORES_READ : HOST_PLANT_NO_LAST_STORES_READ))
        host_wait(&read);
}

/* ---- beginning and end ---- */

/* The phases of a block's ring. */
static void count_uses(const host_block *block) {
    unsigned stages = 0;
    for (uint32_t address = HOST_STATIC_SHARED; address < HOST_DYNAMIC_SHARED; address += 8) {
        uint32_t index, count;
        const char *name = piece_at(block, address, &index, &count);
        const barrier *barrier = (const void *)(block->shared + address);
        if (name == NULL || strcmp(name, "full_barriers") != 0 || barrier->mark != MARK)
            continue;
        unsigned uses = ended[block->rank][address / 8];
        rings.least_uses = uses < rings.least_uses ? uses : rings.least_uses;
        stages++;
    }
    rings.stages = stages;
}

void host_windows_begin(void) {
    static char *windows[HOST_MOST_BLOCKS];
    for (unsigned rank = 0; rank < host_cluster_size(); rank++) {
        if (windows[rank] == NULL)
            windows[rank] = aligned_alloc(1024, (HOST_WINDOW_BYTES + 1023) / 1024 * 1024);
        if (windows[rank] == NULL)
            abort();
        memset(windows[rank], HOST_POISON, HOST_WINDOW_BYTES);
        memset(windows[rank], 0, HOST_DYNAMIC_SHARED);
        host_block_of(rank)->shared = windows[rank];
    }
}

void host_copies_begin(void) {
    if (host_block_of(0)->index + host_cluster_size() == gridDim.x) /* the first that runs */
        rings = (host_rings){host_kernel_name(), UINT32_MAX, 0, 0, 0};
    memset(ended, 0, sizeof ended);
    cluster_meeting = (host_meeting){0};
    flying.count = 0;
    for (unsigned thread = 0; thread < host_cluster_size() * blockDim.x; thread++) {
        actions *own = &all_actions[thread];
        own->write_count = own->init_count = own->cluster_meetings = own->batches = own->in_batch = own->read_end = 0;
    }
}

void host_copies_end_thread(void) {
    const actions *own = current_actions();
    if (own->write_count > 0)
        host_refuse("it ends with %u pieces written to shared memory that no fence is behind", own->write_count);
    if (own->init_count > 0 || own->in_batch > 0)
        host_refuse("it ends with barriers or stores that it has not made known");
    for (unsigned i = 0; i < flying.count; i++) {
        if (flying.copies[i].is_store && flying.copies[i].thread == host_current_number())
            host_refuse("it ends before its stores have read shared memory");
    }
}

void host_copies_end(void) {
    for (unsigned rank = 0; rank < host_cluster_size(); rank++)
        count_uses(host_block_of(rank));
    if (flying.count > 0)
        host_refuse("its threads have ended, and %u copies have not", flying.count);
}
