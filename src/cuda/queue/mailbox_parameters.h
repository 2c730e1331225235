/* The structs that the kernels of mailbox.cu take. */
#ifndef SB_CUDA_QUEUE_MAILBOX_PARAMETERS_H
#define SB_CUDA_QUEUE_MAILBOX_PARAMETERS_H

#include <stdint.h>

/* Threads of the one block that receives. */
#define SB_CUDA_MAILBOX_THREADS 512

/* Words of 64 bits from the place of pinned memory whose turn it is. */
typedef struct sb_cuda_mail {
    const uint64_t *places; /* `count` of 1 + `words`: the number of the turn, and what comes */
    uint64_t *turn;         /* on the device: how many have come */
    uint64_t *to;
    int32_t count, words;
    uint32_t *cleared; /* as many words that become 0 */
    int64_t cleared_words;
} sb_cuda_mail;

/* Those words that are not 0 go to pinned memory. */
typedef struct sb_cuda_answer {
    const uint32_t *words;
    const uint64_t *address; /* on the device: where it begins */
    int64_t count;
} sb_cuda_answer;

/* The same, and here they become 0; they go to the place of pinned memory whose turn it is. By one block. */
typedef struct sb_cuda_collection {
    uint32_t *words, *to; /* `count`, and `places` times as many */
    uint64_t *turn;       /* on the device: how often they have been collected */
    int64_t count, places;
} sb_cuda_collection;

#endif
