/* What Hopper's threads set going and what is in flight: copies (host_copies.c) and products (host_products.c). */
#ifndef HOST_ENGINES_H
#define HOST_ENGINES_H

#include "host_blocks.h"

#define HOST_NO_WORK UINT64_MAX

/** The next number of those that say what was begun first. */
uint64_t host_next_ticket(void);

/** What pieces of work there are: `ticket_of(i)`, HOST_NO_WORK behind the last, and `do_work(i)`. A piece that must not
 * be done yet is not among them. */
uint64_t host_copy_ticket(unsigned i);
void host_do_copy(unsigned i);
uint64_t host_products_ticket(unsigned i);
void host_do_products(unsigned i);

void host_copies_begin(void);
void host_copies_end(void);
void host_copies_end_thread(void);
void host_products_begin(void);
void host_products_end_thread(void);

/** Where the bytes are in the block's shared memory; refuses what is outside of the dynamic part. */
char *host_dynamic_shared(const host_block *block, uint32_t address, uint32_t bytes);
/** Where the 128-byte swizzle puts what else lay at the address. */
static inline uint32_t host_swizzle_128(uint32_t address) {
    return address ^ (address >> 7 & 7) << 4;
}

#endif
