/* Tensors that wait to be used again, so that a session that goes on allocates none. A tensor here
 * is its description: its storage goes when the tensor is let go of. */
#ifndef SB_TENSOR_TENSOR_POOL_H
#define SB_TENSOR_TENSOR_POOL_H

#include "tensor/tensor.h"

typedef struct sb_tensor_pool sb_tensor_pool;

/** An empty pool; NULL when memory runs out. */
sb_tensor_pool *sb_tensor_pool_create(void);
/** Ends the pool: frees what waits. Tensors of the pool live on, and are freed when they are let go
 * of, by any thread. NULL is allowed. */
void sb_tensor_pool_close(sb_tensor_pool *pool);
/** From now on this thread makes its tensors of what waits in `pool` (NULL: of fresh memory), to
 * which they come back once somebody has dropped their last reference. Returns the pool before, to
 * be entered again. */
sb_tensor_pool *sb_tensor_pool_enter(sb_tensor_pool *pool);

/** Room for a tensor: from the thread's pool, or fresh; NULL when memory runs out. *home is what
 * the tensor's home becomes. */
sb_tensor *sb_tensor_pool_take(sb_tensor_pool **home);
/** Sees to it that the thread's pool has room for `count` tensors. False when memory runs out.
 * Without a pool, nothing is kept. */
bool sb_tensor_pool_reserve(size_t count);
/** Gives the room of a tensor without references or storage back to its home, or frees it. */
void sb_tensor_pool_give(sb_tensor *tensor);

#endif
