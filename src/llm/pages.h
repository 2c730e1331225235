/* Which pages of a cache are in use: each has a number of holders, and is free without any. */
#ifndef SB_LLM_PAGES_H
#define SB_LLM_PAGES_H

#include <samebit/error.h>

#include <stdint.h>

/* The start of a sequence that is nobody's, whose rows go nowhere: samebit.PagedScatter (docs/numerics.md). */
#define SB_LLM_NOBODY (-1)

typedef struct sb_llm_pages {
    int64_t count, free_count;
    int64_t *free;    /* the free ones; the last is taken next */
    int64_t *holders; /* of each page */
} sb_llm_pages;

/** Makes `count` free pages. Errors: OUT_OF_MEMORY. */
sb_status sb_llm_pages_create(int64_t count, sb_llm_pages *pages, sb_error *error);
/** Frees them; of zeros, too. */
void sb_llm_pages_clear(sb_llm_pages *pages);

/** Takes a free page, of which there must be one: its only holder is the caller's. */
int64_t sb_llm_pages_take(sb_llm_pages *pages);
/** Adds a holder to a page that has one. */
void sb_llm_pages_hold(sb_llm_pages *pages, int64_t page);
/** Takes a holder away; the last one's page is free. */
void sb_llm_pages_drop(sb_llm_pages *pages, int64_t page);

#endif
