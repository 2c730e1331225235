/* What a run finds in pinned memory when it begins, and what it leaves there at its end: runtime/run_table.h. */
#include "cuda/common/kernel.cuh"
#include "cuda/queue/mailbox_parameters.h"

/* The host counts the same turns. Were it another one, the run would compute with another run's numbers. */
SB_CUDA_FUNCTION void mailbox_is_wrong(void) {
#if defined(__CUDA_ARCH__)
    __trap();
#else
    __builtin_trap();
#endif
}

SB_CUDA_BLOCK_KERNEL(sb_cuda_mailbox_receive, sb_cuda_mail, p) {
    const uint64_t turn = *p->turn;
    /* Written by the host since the last launch: read where it is, not in a cache. */
    const volatile uint64_t *place = p->places + turn % (uint64_t)p->count * (uint64_t)(1 + p->words);
    for (int i = (int)threadIdx.x; i < p->words; i += SB_CUDA_MAILBOX_THREADS)
        p->to[i] = place[1 + i];
    for (int64_t i = threadIdx.x; i < p->cleared_words; i += SB_CUDA_MAILBOX_THREADS)
        p->cleared[i] = 0;
    if (threadIdx.x == 0 && place[0] != turn)
        mailbox_is_wrong();
    SB_CUDA_BARRIER();
    if (threadIdx.x == 0)
        *p->turn = turn + 1;
}

SB_CUDA_KERNEL(sb_cuda_mailbox_leave, sb_cuda_answer, p) {
    SB_CUDA_EACH(i, p->count) {
        if (p->words[i] != 0)
            ((uint32_t *)(uintptr_t)*p->address)[i] = p->words[i];
    }
}

SB_CUDA_BLOCK_KERNEL(sb_cuda_mailbox_collect, sb_cuda_collection, p) {
    const uint64_t turn = *p->turn;
    uint32_t *to = p->to + (int64_t)(turn % (uint64_t)p->places) * p->count;
    for (int64_t i = threadIdx.x; i < p->count; i += SB_CUDA_MAILBOX_THREADS) {
        const uint32_t word = p->words[i];
        if (word != 0) {
            to[i] = word;
            p->words[i] = 0;
        }
    }
    SB_CUDA_BARRIER();
    if (threadIdx.x == 0)
        *p->turn = turn + 1;
}
