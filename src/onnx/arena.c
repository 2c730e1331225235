#include "onnx/arena.h"

#include <stdalign.h>
#include <sys/mman.h>

#include "base/allocation.h"

struct iv_arena_block {
    iv_arena_block *next, *previous;
    size_t used, bytes;
    alignas(IV_ALIGNMENT) char data[];
};

#define FIRST_BLOCK_BYTES 8192
#define LARGEST_BLOCK_BYTES ((size_t)1 << 20)
#define PIECE_ALIGNMENT 16
/* Letting pages go costs a system call, and the few that are still needed come back from the page
 * cache. */
#define COPIED_BYTES ((size_t)32 << 20)

static void *allocate_for_protobuf(void *context, size_t bytes) {
    return iv_arena_allocate(context, bytes);
}

/* Everything waits for the end: what protobuf-c frees early are tables in proportion to the number
 * of fields. */
static void free_for_protobuf(void *context, void *pointer) {
    (void)context;
    (void)pointer;
}

void iv_arena_begin(iv_arena *arena, size_t budget) {
    *arena = (iv_arena){.next_bytes = FIRST_BLOCK_BYTES, .budget = budget};
    arena->allocator = (ProtobufCAllocator){allocate_for_protobuf, free_for_protobuf, arena};
}

void iv_arena_set_mapping(iv_arena *arena, const void *mapping, size_t bytes) {
    arena->mapping = (void *)(uintptr_t)mapping;
    arena->mapping_bytes = bytes;
}

static void let_pages_go(iv_arena *arena, size_t bytes) {
    arena->copied += bytes;
    if (arena->mapping == NULL || arena->copied < COPIED_BYTES)
        return;
    arena->copied = 0;
    (void)madvise(arena->mapping, arena->mapping_bytes, MADV_DONTNEED); /* only a hint */
}

void iv_arena_end(iv_arena *arena) {
    while (arena->blocks != NULL) {
        iv_arena_block *next = arena->blocks->next;
        iv_free(arena->blocks);
        arena->blocks = next;
    }
    arena->open = NULL;
}

static iv_arena_block *add_block(iv_arena *arena, size_t bytes) {
    size_t total;
    if (__builtin_add_overflow(bytes, sizeof(iv_arena_block), &total))
        return NULL;
    iv_arena_block *block = iv_allocate(total);
    if (block == NULL)
        return NULL;
    *block = (iv_arena_block){.next = arena->blocks, .bytes = bytes};
    if (arena->blocks != NULL)
        arena->blocks->previous = block;
    arena->blocks = block;
    return block;
}

void *iv_arena_allocate(iv_arena *arena, size_t bytes) {
    if (bytes > arena->budget) {
        arena->exhausted = true;
        return NULL;
    }
    arena->budget -= bytes;
    if (bytes >= IV_ARENA_OWN_BLOCK) {
        let_pages_go(arena, bytes);
        iv_arena_block *block = add_block(arena, bytes);
        return block != NULL ? block->data : NULL;
    }
    size_t rounded = (bytes + PIECE_ALIGNMENT - 1) / PIECE_ALIGNMENT * PIECE_ALIGNMENT;
    iv_arena_block *open = arena->open;
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

iv_arena_block *iv_arena_take(iv_arena *arena, void *data) {
    iv_arena_block *block =
        (iv_arena_block *)(void *)((char *)data - offsetof(iv_arena_block, data));
    if (block->previous != NULL)
        block->previous->next = block->next;
    else
        arena->blocks = block->next;
    if (block->next != NULL)
        block->next->previous = block->previous;
    return block;
}

void iv_arena_free_block(void *block) {
    iv_free(block);
}
