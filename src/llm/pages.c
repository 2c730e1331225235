#include "llm/pages.h"

#include "base/allocation.h"
#include "base/error.h"

sb_status sb_llm_pages_create(int64_t count, sb_llm_pages *pages, sb_error *error) {
    *pages = (sb_llm_pages){.count = count, .free_count = count};
    pages->free = sb_allocate_array((size_t)count, sizeof *pages->free);
    pages->holders = sb_allocate_array((size_t)count, sizeof *pages->holders);
    if (pages->free == NULL || pages->holders == NULL) {
        sb_llm_pages_clear(pages);
        return sb_fail_memory(error, (size_t)count * sizeof *pages->free);
    }
    for (int64_t i = 0; i < count; i++)
        pages->free[i] = count - 1 - i;
    return SB_OK;
}

void sb_llm_pages_clear(sb_llm_pages *pages) {
    sb_free(pages->free);
    sb_free(pages->holders);
    *pages = (sb_llm_pages){0};
}

int64_t sb_llm_pages_take(sb_llm_pages *pages) {
    int64_t page = pages->free[--pages->free_count];
    pages->holders[page] = 1;
    return page;
}

void sb_llm_pages_hold(sb_llm_pages *pages, int64_t page) {
    pages->holders[page]++;
}

void sb_llm_pages_drop(sb_llm_pages *pages, int64_t page) {
    if (--pages->holders[page] == 0)
        pages->free[pages->free_count++] = page;
}
