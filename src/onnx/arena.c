#include "onnx/arena.h"

#include <stdalign.h>
#include <sys/mman.h>

#include "base/allocation.h"

struct sb_arena_block {
    sb_arena_block *next, *previous;
    size_t used, bytes;
    alignas(SB_ALIGNMENT) char data[];
};

#define FIRST_BLOCK_BYTES 8192
#define LARGEST_BLOCK_BYTES ((size_t)1 << 20)
#define PIECE_ALIGNMENT 16
/* Letting pages go costs a system call, and the few that are still needed come back from the page cache. */
#define COPIED_BYTES ((size_t)32 << 20)

static void *allocate_for_protobuf(void *context, size_t bytes) {
    return sb_arena_allocate(context, bytes);
}

/* Everything waits for the end: what protobuf-c frees early are tables in proportion to the number of fields. */
static void free_for_protobuf(void *context, void *pointer) {
    (void)context;
    (void)pointer;
}

void sb_arena_begin(sb_arena *arena, size_t budget) {
    *arena = (sb_arena){.next_bytes = FIRST_BLOCK_BYTES, .budget = budget};
    arena->allocator = (ProtobufCAllocator){allocate_for_protobuf, free_for_protobuf, arena};
}

void sb_arena_set_mapping(sb_arena *arena, const void *mapping, size_t bytes) {
    arena->mapping = (void *)(uintptr_t)mapping;
    arena->mapping_bytes = bytes;
}

static void let_pages_go(sb_arena *arena, size_t bytes) {
    arena->copied += bytes;
    if (arena->mapping == NULL || arena->copied < COPIED_BYTES)
        return;
    arena->copied = 0;
    (void)madvise(arena->mapping, arena->mapping_bytes, MADV_DONTNEED); /* only a hint */
}

void sb_arena_end(sb_arena *arena) {
    while (arena->blocks != NULL) {
        sb_arena_block *next = arena->blocks->next;
        sb_free(arena->blocks);
        arena->blocks = next;
    }
    arena->open = NULL;
}

static sb_arena_block *add_block(sb_arena *arena, size_t bytes) {
    size_t total;
    if (__builtin_add_overflow(bytes, sizeof(sb_arena_block), &total))
        return NULL;
    sb_arena_block *block = sb_allocate(total);
    if (block == NULL)
        return NULL;
    *block = (sb_arena_block){.next = arena->blocks, .bytes = bytes};
    if (arena->blocks != NULL)
        arena->blocks->previous = block;
    arena->blocks = block;
    return block;
}

void *sb_arena_allocate(sb_arena *arena, size_t bytes) {
    if (bytes > arena->budget) {
        arena->exhausted = true;
        return NULL;
    }
    arena->budget -= bytes;
    if (bytes >= SB_ARENA_OWN_BLOCK) {
        let_pages_go(arena, bytes);
        sb_arena_block *block = add_block(arena, bytes);
        return block != NULL ? block->data : NULL;
    }
    size_t rounded = (bytes + PIECE_ALIGNMENT - 1) / PIECE_ALIGNMENT * PIECE_ALIGNMENT;
    sb_arena_block *open = arena->open;
    if (open == NULL || open->bytes - open->used < rounded) {
        open = add_block(arena, arena->next_bytes);
        if (open == NULL)
            return NULL;
        arena->open = open;
        if (arena->next_bytes < LARGEST_BLOCK_BYTES)
            arena->next_bytes *= 2;
    }
    void *piece = open->data + open->used;
    open->used += rounded;
    return piece;
}

sb_arena_block *sb_arena_take(sb_arena *arena, void *data) {
    sb_arena_block *block = (sb_arena_block *)(void *)((char *)data - offsetof(sb_arena_block, data));
    if (block->previous != NULL)
        block->previous->next = block->next;
    else
        arena->blocks = block->next;
    if (block->next != NULL)
        block->next->previous = block->previous;
    return block;
}

void sb_arena_free_block(void *block) {
    sb_free(block);
}
