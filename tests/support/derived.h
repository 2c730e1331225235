/* What a kernel of the host derives of an input that is known beforehand, for tests that launch kernels themselves. */
#ifndef SB_TESTS_DERIVED_H
#define SB_TESTS_DERIVED_H

#include "base/allocation.h"
#include "kernel/kernel.h"

/* *derived is NULL where there is nothing to derive; else the caller frees it. */
static inline sb_status derive_on_host(const sb_kernel *kernel, const sb_kernel_query *query, void **derived,
                                       sb_error *error) {
    sb_derived_form form;
    *derived = NULL;
    SB_TRY(sb_kernel_derives(kernel, query, &form, error));
    const sb_tensor *from = form.input >= 0 ? query->inputs[form.input]->constant : NULL;
    if (from == NULL)
        return SB_OK;
    *derived = sb_allocate(form.bytes);
    if (*derived == NULL)
        return sb_fail_memory(error, form.bytes);
    sb_status status = sb_kernel_derive(kernel, query->node, query->isa, NULL, NULL, from, *derived, error);
    if (status != SB_OK) {
        sb_free(*derived);
        *derived = NULL;
    }
    return status;
}

#endif
