/* The public builder: what is described (inputs and variables). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/builder.h"
#include "base/allocation.h"

/* ---- descriptions as facts ---- */

static sb_status refuse(const sb_value_description *description, const char *what, sb_error *error) {
    return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "'%.200s': %s", description->name, what);
}

static sb_status check_description(const sb_value_description *description, sb_error *error) {
    if (description->name == NULL || description->name[0] == '\0')
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "an input or a variable has no name");
    if (description->kind != SB_KIND_TENSOR && description->kind != SB_KIND_SEQUENCE)
        return refuse(description, "its kind is neither that of a tensor nor that of a sequence", error);
    if (description->dtype <= SB_DTYPE_NONE || description->dtype >= SB_DTYPE_COUNT)
        return refuse(description, "it has no dtype", error);
    if (description->rank < SB_RANK_UNKNOWN || description->rank > SB_MAX_RANK)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "'%.200s': rank %d is outside of 0 to %d (-1 where it is open)", description->name,
                       description->rank, SB_MAX_RANK);
    if (description->rank > 0 && description->dims == NULL)
        return refuse(description, "it has a rank and no extents", error);
    return SB_OK;
}

/* The extent of one axis; NULL with the reason in `error`. */
static sb_dim extent(sb_scope *scope, const sb_value_description *description, int axis, bool must_be_known,
                     sb_error *error) {
    int64_t number = description->dims[axis];
    const char *symbol = description->dim_texts != NULL ? description->dim_texts[axis] : NULL;
    char hint[64];
    if (number >= 0)
        return sb_dim_constant(scope, number);
    if (number != -1) {
        sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "'%.200s': extent %" PRId64 " of axis %d is negative",
                description->name, number, axis);
        return NULL;
    }
    if (symbol != NULL && symbol[0] != '\0') {
        if (strpbrk(symbol, "+*/(), ") == NULL)
            return sb_dim_symbol(scope, symbol);
        sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "'%.200s': extent '%.100s' of axis %d is not the name of a symbol",
                description->name, symbol, axis);
        return NULL;
    }
    if (must_be_known) {
        sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                "'%.200s': axis %d of a variable needs an extent: a number, or the name of a symbol", description->name,
                axis);
        return NULL;
    }
    snprintf(hint, sizeof hint, "%.40s.%d", description->name, axis);
    return sb_dim_fresh(scope, hint);
}

static sb_status fact_of(sb_scope *scope, const sb_value_description *description, bool must_be_known, sb_fact *fact,
                         sb_error *error) {
    sb_dim dims[SB_MAX_RANK] = {0};
    SB_TRY(check_description(description, error));
    for (int axis = 0; axis < description->rank; axis++) {
        dims[axis] = extent(scope, description, axis, must_be_known, error);
        SB_TRY(sb_scope_check(scope, error));
        if (dims[axis] == NULL)
            return SB_ERROR_INVALID_ARGUMENT;
    }
    sb_fact_set_tensor(fact, description->dtype, description->rank, dims);
    fact->kind = description->kind;
    fact->optional = description->optional;
    return SB_OK;
}

/* ---- inputs ---- */

static sb_status add_input(sb_builder *builder, const sb_value_description *description, sb_value_id *id,
                           sb_error *error) {
    sb_fact fact = {0};
    bool nested = builder->open->outer != NULL;
    if (!nested)
        SB_TRY(fact_of(builder->graphs.scope, description, false, &fact, error));
    else if (description->kind != SB_KIND_NONE)
        return refuse(description, "an input of a nested graph has a name alone: what enters is the node's to say",
                      error);
    SB_TRY(sb_builder_named_value(builder, description->name, id, error));
    return sb_graph_builder_set_input(builder->open, *id, nested ? NULL : &fact, error);
}

sb_status sb_builder_input(sb_builder *builder, const sb_value_description *description, sb_builder_value *value,
                           sb_error *error) {
    sb_value_id id;
    sb_builder_change change;
    SB_TRY(sb_builder_check(builder, error));
    SB_TRY(sb_builder_reserve_values(builder, 1, error));
    sb_builder_begin(builder, &change);
    SB_TRY(sb_builder_end(builder, &change, add_input(builder, description, &id, error)));
    *value = sb_builder_note_value(builder, id);
    return SB_OK;
}

/* ---- variables ---- */

static sb_status read_options(const sb_variable_options *given, sb_variable_options *options, sb_error *error) {
    *options = (sb_variable_options)SB_VARIABLE_OPTIONS_DEFAULT;
    if (given == NULL)
        return SB_OK;
    if (given->struct_bytes < sizeof given->struct_bytes || given->struct_bytes > sizeof *given)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "sb_variable_options has %zu bytes where this library knows %zu: start from "
                       "SB_VARIABLE_OPTIONS_DEFAULT",
                       given->struct_bytes, sizeof *given);
    memcpy(options, given, given->struct_bytes);
    return SB_OK;
}

static sb_status check_initial(const char *name, const sb_fact *fact, const sb_tensor *initial, bool slots,
                               sb_error *error) {
    int first = slots ? 1 : 0;
    SB_TRY(sb_tensor_check_on_host(initial, "what a variable begins with", error));
    bool fits = initial->dtype == fact->dtype && initial->rank == fact->rank - first;
    for (int axis = 0; axis < initial->rank && fits; axis++) {
        int64_t number;
        fits = sb_dim_is_constant(fact->dims[axis + first], &number) && number == initial->dims[axis];
    }
    if (fits)
        return SB_OK;
    char wanted[SB_FACT_TEXT_BYTES], given[SB_DIMS_TEXT_BYTES];
    return sb_fail(error, SB_ERROR_SHAPE, "variable '%.200s' is %s, and %s begins with %s%s", name,
                   sb_fact_text(fact, wanted, sizeof wanted), slots ? "each of its slots" : "it",
                   sb_dtype_name(initial->dtype), sb_dims_text(initial->rank, initial->dims, given));
}

static sb_status check_variable(const sb_builder *builder, const sb_value_description *description,
                                const sb_variable_options *options, sb_error *error) {
    if (description->kind != SB_KIND_TENSOR || description->optional || description->dtype == SB_STRING)
        return refuse(description, "a variable is a tensor of numbers", error);
    if (description->rank < (options->slots ? 1 : 0))
        return refuse(description, options->slots ? "slots need an axis" : "a variable has a rank", error);
    if (sb_names_find(&builder->variable_names, description->name) != NULL)
        return refuse(description, "another variable has that name", error);
    return SB_OK;
}

sb_status sb_builder_add_variable(sb_builder *builder, const sb_value_description *description, sb_tensor *initial,
                                  const sb_variable_options *given, sb_builder_variable *variable, sb_error *error) {
    sb_variable_options options;
    sb_variables *variables = &builder->graphs.variables;
    sb_fact fact = {0};
    int index;
    SB_TRY(sb_builder_check(builder, error));
    SB_TRY(read_options(given, &options, error));
    SB_TRY(fact_of(builder->graphs.scope, description, true, &fact, error));
    SB_TRY(check_variable(builder, description, &options, error));
    if (initial != NULL)
        SB_TRY(check_initial(description->name, &fact, initial, options.slots, error));
    SB_TRY(sb_variables_add(variables, description->name, &fact, initial, options.slots, &index, error));
    if (!sb_names_put(&builder->variable_names, variables->items[index].name, index)) {
        sb_variables_remove_last(variables);
        return sb_fail_memory(error, sizeof(sb_name_entry));
    }
    *variable = sb_builder_handle(builder, SB_HANDLE_VARIABLE, (size_t)index);
    return SB_OK;
}

sb_status sb_builder_read(sb_builder *builder, sb_builder_variable variable, sb_builder_value *value, sb_error *error) {
    size_t index;
    sb_value_id id;
    sb_builder_change change;
    SB_TRY(sb_builder_check(builder, error));
    SB_TRY(sb_builder_index(builder, SB_HANDLE_VARIABLE, variable, &index, error));
    SB_TRY(sb_builder_reserve_values(builder, 1, error));
    sb_builder_begin(builder, &change);
    SB_TRY(sb_builder_end(builder, &change, sb_graph_builder_read(builder->open, (int)index, &id, error)));
    *value = sb_builder_note_value(builder, id);
    return SB_OK;
}

sb_status sb_builder_update(sb_builder *builder, sb_builder_variable variable, sb_builder_value new_value,
                            sb_error *error) {
    size_t index;
    sb_value_id id;
    sb_builder_change change;
    SB_TRY(sb_builder_check(builder, error));
    SB_TRY(sb_builder_index(builder, SB_HANDLE_VARIABLE, variable, &index, error));
    sb_builder_begin(builder, &change);
    sb_status status = sb_builder_resolve(builder, new_value, &id, error);
    if (status == SB_OK)
        status = sb_graph_builder_update(builder->open, (int)index, id, error);
    return sb_builder_end(builder, &change, status);
}
