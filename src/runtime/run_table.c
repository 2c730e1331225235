#include "runtime/run_table.h"

#include <string.h>

#include "base/allocation.h"
#include "runtime/plan.h"
#include "runtime/state_binding.h"

/* Inputs begin at multiples of this, so that kernels may load several elements at once. */
#define ALIGNMENT 256

static size_t align(size_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- what goes with it ---- */

static bool is_read(const sb_program *program, sb_value_id value) {
    for (size_t s = 0; s < program->step_count; s++) {
        const sb_node *node = program->steps[s].node;
        for (int i = 0; i < node->input_count; i++) {
            if (node->inputs[i] == value)
                return true;
        }
    }
    return false;
}

/* The bytes that an input takes in the table; 0: it does not go with it. */
static size_t bytes_to_send(const sb_plan *plan, const sb_program *program, size_t index) {
    sb_value_id value = program->enter[index];
    const sb_fact *fact = &plan->facts[value];
    int64_t dims[SB_MAX_RANK], elements;
    bool variable = plan->binding != NULL && plan->binding->read[index] >= 0;
    if (variable || plan->sides[value] != SB_HOST || fact->dtype == SB_STRING || !sb_fact_is_concrete(fact, dims) ||
        !is_read(program, value) || sb_count_elements(fact->dtype, fact->rank, dims, &elements, NULL) != SB_OK)
        return 0;
    return (size_t)elements * sb_dtype_size(fact->dtype);
}

/* Lists the inputs that go with the table, behind `used` bytes: *end is where it ends. */
static sb_status list_inputs(sb_run_table *table, const sb_program *program, const sb_plan *plan, size_t used,
                             size_t *offsets, size_t *end, sb_error *error) {
    size_t begin = align(used);
    *end = begin;
    table->sent = sb_allocate_array(program->enter_count, sizeof *table->sent);
    if (table->sent == NULL)
        return sb_fail_memory(error, program->enter_count * sizeof *table->sent);
    for (size_t i = 0; i < program->enter_count; i++) {
        size_t bytes = bytes_to_send(plan, program, i);
        if (bytes == 0 || bytes > SB_RUN_TABLE_INPUT_BYTES || *end - begin + align(bytes) > SB_RUN_TABLE_INPUT_BYTES)
            continue;
        offsets[table->sent_count] = *end;
        table->sent[table->sent_count++] = (sb_sent_input){.index = i, .value = program->enter[i]};
        *end += align(bytes);
    }
    return SB_OK;
}

static sb_status show_input(const sb_run_table *table, sb_sent_input *input, const sb_plan *plan, size_t offset,
                            sb_error *error) {
    const sb_fact *fact = &plan->facts[input->value];
    int64_t dims[SB_MAX_RANK];
    if (!sb_fact_is_concrete(fact, dims))
        return sb_fail(error, SB_ERROR_INTERNAL, "an input of unknown extents in the table of a run");
    SB_TRY(sb_tensor_over(table->here->storage, table->here->data + offset, fact->dtype, fact->rank, dims, NULL,
                          &input->rows, error));
    return sb_tensor_over(table->there->storage, table->there->data + offset, fact->dtype, fact->rank, dims, NULL,
                          &input->there, error);
}

/* The elements of a value over the table on one of the sides. */
static sb_status show(const sb_open_extents *open, sb_value_id value, const int64_t *dims, const sb_tensor *table,
                      sb_tensor **shown, sb_error *error) {
    return sb_tensor_over(table->storage, table->data + open->elements[value] * (int64_t)sizeof(int64_t), SB_S64,
                          open->formulas[value].rank, dims, NULL, shown, error);
}

static sb_status show_elements(sb_run_table *table, const sb_open_extents *open, size_t value_count, sb_error *error) {
    for (size_t v = 0; v < value_count; v++) {
        int64_t dims[SB_MAX_RANK];
        if (open->elements[v] < 0 || !sb_fact_is_concrete(&open->formulas[v], dims))
            continue;
        table->shown[table->shown_count++] = (sb_value_id)v;
        SB_TRY(show(open, (sb_value_id)v, dims, table->here, &table->known[v], error));
        if (table->there != NULL)
            SB_TRY(show(open, (sb_value_id)v, dims, table->there, &table->there_shown[table->shown_count - 1], error));
    }
    return SB_OK;
}

/* ---- the table ---- */

static sb_status fill_table(sb_run_table *table, const sb_open_extents *open, const sb_program *program,
                            const sb_plan *plan, sb_queue *queue, size_t *offsets, sb_error *error) {
    size_t values = program->graph->value_count, bytes = (open->scalar_count + 1) * sizeof(int64_t);
    int64_t steps = queue != NULL ? (int64_t)program->step_count : 0;
    table->answer = open->scalar_count;
    table->known = sb_allocate_array(values, sizeof *table->known);
    table->shown = sb_allocate_array(values, sizeof *table->shown);
    table->there_shown = sb_allocate_array(values, sizeof *table->there_shown);
    if (offsets == NULL || table->known == NULL || table->shown == NULL || table->there_shown == NULL)
        return sb_fail_memory(error, values * sizeof *table->known);
    if (queue != NULL)
        SB_TRY(list_inputs(table, program, plan, bytes, offsets, &bytes, error));
    const int64_t posted = (int64_t)align(bytes), count = posted + steps * (int64_t)sizeof(uint32_t);
    SB_TRY(sb_tensor_create(SB_U8, 1, &count, &table->here, error));
    table->scalars = (int64_t *)(void *)table->here->data;
    if (queue != NULL)
        SB_TRY(sb_queue_to_device(queue, table->here, &table->there, error));
    if (queue != NULL) {
        sb_storage *there = table->there->storage;
        SB_TRY(sb_tensor_over(there, table->there->data, SB_U8, 1, &posted, NULL, &table->posted, error));
        SB_TRY(sb_tensor_over(there, table->there->data + posted, SB_U32, 1, &steps, NULL, &table->faults, error));
    }
    for (size_t i = 0; i < table->sent_count; i++)
        SB_TRY(show_input(table, &table->sent[i], plan, offsets[i], error));
    return show_elements(table, open, values, error);
}

sb_status sb_run_table_create(sb_run_table *table, const sb_open_extents *open, const sb_program *program,
                              const sb_plan *plan, sb_queue *queue, sb_error *error) {
    size_t *offsets = sb_allocate_array(program->enter_count, sizeof *offsets);
    sb_status status = fill_table(table, open, program, plan, queue, offsets, error);
    sb_free(offsets);
    return status;
}

sb_status sb_run_table_open_mailbox(sb_run_table *table, sb_queue *queue, size_t count, sb_error *error) {
    if (table->mailbox != NULL || table->posted->dims[0] > SB_RUN_TABLE_MAIL_BYTES)
        return SB_OK;
    return sb_mailbox_create(queue, count, table->posted, table->faults, &table->mailbox, error);
}

void sb_run_table_clear(sb_run_table *table, sb_queue *queue) {
    sb_mailbox_destroy(queue, table->mailbox);
    for (size_t i = 0; i < table->shown_count; i++) {
        sb_tensor_release(table->known[table->shown[i]]);
        sb_tensor_release(table->there_shown[i]);
    }
    for (size_t i = 0; i < table->sent_count; i++) {
        sb_tensor_release(table->sent[i].rows);
        sb_tensor_release(table->sent[i].there);
    }
    sb_tensor_release(table->faults);
    sb_tensor_release(table->posted);
    sb_tensor_release(table->here);
    sb_tensor_release(table->there);
    sb_free(table->known);
    sb_free(table->shown);
    sb_free(table->there_shown);
    sb_free(table->sent);
    *table = (sb_run_table){0};
}

static bool is_read_or_leaves(const sb_program *program, const sb_plan *plan, sb_value_id value) {
    for (size_t i = 0; i < program->leave_count; i++) {
        if (program->leave[i] == value)
            return true;
    }
    for (size_t s = 0; s < program->step_count; s++) {
        const sb_node *node = program->steps[s].node;
        for (int i = 0; i < node->input_count && plan->steps[s].mode != SB_STEP_SKIP; i++) {
            if (node->inputs[i] == value)
                return true;
        }
    }
    return false;
}

void sb_run_table_sort(sb_run_table *table, const sb_program *program, const sb_plan *plan) {
    table->read_count = 0;
    for (size_t i = 0; i < table->shown_count; i++) {
        sb_value_id value = table->shown[i];
        sb_tensor *there = table->there_shown[i];
        if (!is_read_or_leaves(program, plan, value))
            continue;
        table->shown[i] = table->shown[table->read_count];
        table->there_shown[i] = table->there_shown[table->read_count];
        table->shown[table->read_count] = value;
        table->there_shown[table->read_count++] = there;
    }
}

void sb_run_table_fill(sb_run_table *table, const sb_value *inputs) {
    for (size_t i = 0; i < table->sent_count; i++) {
        const sb_tensor *input = inputs[table->sent[i].index].tensor;
        sb_tensor *rows = table->sent[i].rows;
        memcpy(rows->dims, input->dims, (size_t)input->rank * sizeof *rows->dims);
        sb_tensor_copy_elements(rows, input);
    }
}

sb_status sb_run_table_send(sb_run_table *table, sb_queue *queue, sb_error *error) {
    return sb_queue_upload(queue, table->there, table->here, error);
}

void sb_run_table_post(sb_run_table *table, const void *answer) {
    table->scalars[table->answer] = (int64_t)(uintptr_t)answer;
    sb_mailbox_post(table->mailbox, table->here->data, (size_t)table->posted->dims[0]);
}
