/* What the kernels of PagedScatter and PagedAttention share with their definitions. */
#ifndef SB_OPS_PAGED_H
#define SB_OPS_PAGED_H

#include "graph/op.h"
#include "ops/attention.h"
#include "ops/pages.h"

/* ---- PagedScatter ---- */

/** Checks the extents of a call's inputs, wherever they lie, and says where rows go. SHAPE where something does not fit. */
sb_status sb_paged_scatter_describe(const sb_call *call, sb_pages *pages);
/** Checks that there is a place for each row: SHAPE where there is none. On the host. */
sb_status sb_paged_scatter_check(const sb_call *call, const sb_pages *pages);
/** Writes the checked rows into `output`, whose other elements stay. */
void sb_paged_scatter_write(const sb_call *call, const sb_pages *pages, sb_tensor *output);

/* ---- PagedAttention ---- */

/** Describes a call: sb_attention_describe, with pages. Errors: SHAPE. */
sb_status sb_paged_attention_describe(const sb_call *call, sb_attention_work *work);

#endif
