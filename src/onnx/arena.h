/* Memory for unpacked protobuf messages: handed out in pieces, freed at once, and bounded.
 *
 * protobuf-c allocates every field of a message by itself, many of them a few bytes long. The arena
 * packs them densely, so that a hostile file cannot make memory a thousand times its own size, and
 * refuses to go beyond its budget. Large fields (weights) get blocks of their own, which a tensor
 * can take over without a copy. */
#ifndef SB_ONNX_ARENA_H
#define SB_ONNX_ARENA_H

#include <stdbool.h>

#include <protobuf-c/protobuf-c.h>

#include "base/error.h"

typedef struct sb_arena_block sb_arena_block;

typedef struct sb_arena {
    sb_arena_block *blocks; /* newest first */
    sb_arena_block *open;   /* the block that small pieces come from */
    size_t next_bytes;      /* of the next block for small pieces */
    size_t budget;          /* bytes that may still be handed out */
    bool exhausted;         /* the budget, not memory, ran out */
    void *mapping;          /* the file that is unpacked, where it is mapped; else NULL */
    size_t mapping_bytes;
    size_t copied; /* into large pieces since the mapping's pages were let go */
    ProtobufCAllocator allocator;
} sb_arena;

/** Begins an arena of at most `budget` bytes. The arena must stay where it is. Allocates nothing. */
void sb_arena_begin(sb_arena *arena, size_t budget);
/** Says that what is unpacked is a read-only mapping of a file: then its pages are let go while
 * they are copied, so that a model is not in memory twice. Never for other memory, whose contents
 * that would erase. */
void sb_arena_set_mapping(sb_arena *arena, const void *mapping, size_t bytes);
/** Frees everything but what was taken over. */
void sb_arena_end(sb_arena *arena);
/** `bytes` bytes, aligned to 16 and not initialised; NULL when memory or the budget ran out. */
void *sb_arena_allocate(sb_arena *arena, size_t bytes);

/** Pieces of at least this many bytes have blocks of their own. */
#define SB_ARENA_OWN_BLOCK 4096

/** Takes the piece at `data`, which must be of at least SB_ARENA_OWN_BLOCK bytes and start where
 * the arena's piece did, out of the arena: the result is to be freed by sb_arena_free_block. `data`
 * is aligned to SB_ALIGNMENT. */
sb_arena_block *sb_arena_take(sb_arena *arena, void *data);
/** Frees a block that was taken; for sb_tensor_wrap. */
void sb_arena_free_block(void *block);

#endif
