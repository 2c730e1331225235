/* Small inputs that a device reads go there by one copy: a step of a language model has seven numbers and lists of them, and seven
 * copies of some bytes take as long as the kernels of a layer. Which ones, and where they lie, the memory plan has decided. */
#include <string.h>

#include "runtime/runner_internal.h"
#include "runtime/state_binding.h"

/* Not where some of them are elsewhere already. */
static bool can_come_together(const sb_runner *runner) {
    const sb_plan *plan = runner->plan;
    bool can = plan->together_count != 0;
    for (size_t i = 0; i < plan->together_count && can; i++) {
        sb_value value = runner->values[sb_copy_index(runner->program, SB_HOST, plan->together[i])];
        can = value.kind == SB_KIND_TENSOR && sb_tensor_is_contiguous(value.tensor) &&
              sb_runner_value(runner, SB_DEVICE, plan->together[i]).kind == SB_KIND_NONE;
    }
    return can;
}

/* Makes the copy of one of them, whose elements are to come, and puts those into what is copied. */
static sb_status pack(sb_runner *runner, sb_value_id value, const char **first, const sb_storage **storage,
                      sb_error *error) {
    const sb_tensor *source = sb_runner_value(runner, SB_HOST, value).tensor;
    sb_tensor *copy;
    SB_TRY(sb_runner_make_copy(runner, value, SB_DEVICE, true, source, &copy, error));
    *first = *first == NULL ? copy->data : *first;
    *storage = copy->storage;
    memcpy((char *)sb_tensor_mutable_data(runner->plan->packed) + (copy->data - *first), source->data,
           (size_t)sb_tensor_elements(source) * sb_dtype_size(source->dtype));
    sb_runner_hold(runner, SB_DEVICE, value, sb_value_of_tensor(copy));
    if (runner->plan->binding != NULL)
        sb_binding_note_transfer(runner->plan->binding, value, copy);
    return SB_OK;
}

/* An observer hears of each of them; the first took the time. */
static sb_status tell(const sb_runner *runner, int64_t start, sb_error *error) {
    const sb_plan *plan = runner->plan;
    for (size_t i = 0; i < plan->together_count && runner->settings->observer != NULL; i++) {
        const sb_tensor *copy = sb_runner_value(runner, SB_DEVICE, plan->together[i]).tensor;
        SB_TRY(sb_runner_observe_transfer(runner, plan->together[i], SB_DEVICE,
                                          sb_tensor_elements(copy) * (int64_t)sb_dtype_size(copy->dtype),
                                          i == 0 ? start : sb_now_ns(), error));
    }
    return SB_OK;
}

sb_status sb_runner_bring_together(sb_runner *runner, sb_error *error) {
    const sb_plan *plan = runner->plan;
    const char *first = NULL;
    const sb_storage *storage = NULL;
    sb_tensor *there;
    if (!can_come_together(runner))
        return SB_OK;
    int64_t start = runner->settings->observer != NULL ? sb_now_ns() : 0;
    for (size_t i = 0; i < plan->together_count; i++)
        SB_TRY(pack(runner, plan->together[i], &first, &storage, error));
    int64_t bytes = sb_tensor_elements(plan->packed);
    SB_TRY(sb_tensor_over((sb_storage *)(uintptr_t)storage, (char *)(uintptr_t)first, SB_U8, 1, &bytes, NULL, &there,
                          error));
    sb_status status = sb_queue_upload(runner->settings->placement.queue, there, plan->packed, error);
    sb_tensor_release(there);
    SB_TRY(status);
    SB_TRY(sb_runner_note_tasks(runner, runner->program->graph->values[plan->together[0]].name, SB_TRANSFER, error));
    return tell(runner, start, error);
}
