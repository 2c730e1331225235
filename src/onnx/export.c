#include "onnx/export.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <samebit/version.h>

#include "base/allocation.h"
#include "base/file.h"
#include "graph/builder.h"
#include "onnx/exporter.h"

/* The first version of the format in which local functions and all types of the standard's operator set 15 are; and the
 * newest, for types that came later. */
#define OLDEST_FORMAT 8
#define NEWEST_FORMAT 14

/* Smaller initialisers stay in the model's file. */
#define LEAST_EXTERNAL_BYTES ((size_t)1024)
/* Readers map files in pages; weights that are read whole begin at one. */
#define PAGE_BYTES ((size_t)4096)

/* ---- the model ---- */

static int64_t format_version(const sb_exporter *exporter, const sb_model_metadata *metadata) {
    int64_t version = metadata != NULL ? metadata->format_version : OLDEST_FORMAT;
    if (exporter->small_types || version > NEWEST_FORMAT)
        return NEWEST_FORMAT;
    return version > OLDEST_FORMAT ? version : OLDEST_FORMAT;
}

/* Where no node is of the standard's set (a model of constants), what the file imported, and else the newest. */
static int64_t standard_version(const sb_model_metadata *metadata) {
    for (size_t i = 0; metadata != NULL && i < metadata->opset_count; i++) {
        const sb_model_opset *set = &metadata->opsets[i];
        if (set->domain[0] == '\0' && set->version > 0 && set->version <= SB_NEWEST_OPSET)
            return set->version;
    }
    return SB_NEWEST_OPSET;
}

static sb_status add_set(sb_exporter *exporter, Onnx__ModelProto *model, const char *domain, int64_t version,
                         sb_error *error) {
    Onnx__OperatorSetIdProto *set = sb_new_OperatorSetIdProto(exporter, error);
    if (set == NULL)
        return SB_ERROR_OUT_OF_MEMORY;
    set->domain = (char *)(uintptr_t)domain;
    set->has_version = 1;
    set->version = version;
    model->opset_import[model->n_opset_import++] = set;
    return SB_OK;
}

static sb_status add_sets(sb_exporter *exporter, const sb_model_metadata *metadata, Onnx__ModelProto *model,
                          sb_error *error) {
    bool standard = false;
    model->opset_import = sb_exporter_room(exporter, exporter->set_count + 1, sizeof *model->opset_import, error);
    if (model->opset_import == NULL)
        return SB_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < exporter->set_count; i++) {
        standard = standard || exporter->sets[i].domain[0] == '\0';
        SB_TRY(add_set(exporter, model, exporter->sets[i].domain, exporter->sets[i].version, error));
    }
    return standard ? SB_OK : add_set(exporter, model, "", standard_version(metadata), error);
}

static char *text(const char *given) {
    return given != NULL && given[0] != '\0' ? (char *)(uintptr_t)given : NULL;
}

static sb_status add_metadata(sb_exporter *exporter, const sb_model_metadata *metadata, Onnx__ModelProto *model,
                              sb_error *error) {
    model->has_model_version = 1;
    model->model_version = metadata->model_version;
    model->domain = text(metadata->domain);
    model->doc_string = text(metadata->description);
    model->metadata_props = sb_exporter_room(exporter, metadata->property_count, sizeof *model->metadata_props, error);
    if (model->metadata_props == NULL)
        return SB_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < metadata->property_count; i++) {
        Onnx__StringStringEntryProto *entry = sb_new_StringStringEntryProto(exporter, error);
        if (entry == NULL)
            return SB_ERROR_OUT_OF_MEMORY;
        entry->key = (char *)(uintptr_t)metadata->properties[i].key;
        entry->value = (char *)(uintptr_t)metadata->properties[i].value;
        model->metadata_props[model->n_metadata_props++] = entry;
    }
    return SB_OK;
}

static sb_status make_model(sb_exporter *exporter, const sb_graph *graph, const sb_model_metadata *metadata,
                            Onnx__ModelProto **model, sb_error *error) {
    *model = sb_new_ModelProto(exporter, error);
    if (*model == NULL)
        return SB_ERROR_OUT_OF_MEMORY;
    SB_TRY(sb_export_graph(exporter, graph, &(*model)->graph, error));
    const char *name = metadata != NULL ? text(metadata->graph_name) : NULL;
    (*model)->graph->name = (char *)(uintptr_t)(name != NULL ? name : "main");
    SB_TRY(add_sets(exporter, metadata, *model, error));
    (*model)->has_ir_version = 1;
    (*model)->ir_version = format_version(exporter, metadata);
    (*model)->producer_name = (char *)(uintptr_t) "samebit";
    (*model)->producer_version = (char *)(uintptr_t)sb_version();
    return metadata != NULL ? add_metadata(exporter, metadata, *model, error) : SB_OK;
}

/* ---- files ---- */

/* A temporary file, written by protobuf-c in small pieces. */
typedef struct output {
    ProtobufCBuffer buffer; /* first, so that it is its place */
    FILE *file;
    bool failed;
    int reason; /* errno */
    size_t bytes;
} output;

static void put(ProtobufCBuffer *buffer, size_t bytes, const uint8_t *data) {
    output *output = (struct output *)(void *)buffer;
    if (!output->failed && fwrite(data, 1, bytes, output->file) != bytes) {
        output->failed = true;
        output->reason = errno;
    }
    output->bytes += bytes;
}

static sb_status fail_write(const char *path, int reason, sb_error *error) {
    return sb_fail(error, reason == ENOMEM ? SB_ERROR_OUT_OF_MEMORY : SB_ERROR_IO, "cannot write %s: %s", path,
                   strerror(reason));
}

/* Fills the temporary file of a replacement by `fill(context, output)`. */
static sb_status fill_file(sb_replacement *file, void (*fill)(const void *context, output *output), const void *context,
                           sb_error *error) {
    output output = {.buffer = {put}, .file = fopen(file->temporary, "wbe")};
    if (output.file == NULL)
        return fail_write(file->path, errno, error);
    fill(context, &output);
    if (fclose(output.file) != 0 && !output.failed) {
        output.failed = true;
        output.reason = errno;
    }
    return output.failed ? fail_write(file->path, output.reason, error) : SB_OK;
}

static void fill_model(const void *context, output *output) {
    onnx__model_proto__pack_to_buffer(context, &output->buffer);
}

/* ---- external data ---- */

/* What initialisers had before it moved to the data's file. */
typedef struct moved {
    size_t count;
    struct moved_data {
        ProtobufCBinaryData data;
        size_t offset;
    } * items;
} moved;

static void fill_data(const void *context, output *output) {
    static const uint8_t zeros[4096];
    const moved *moved = context;
    for (size_t i = 0; i < moved->count; i++) {
        put(&output->buffer, moved->items[i].offset - output->bytes, zeros);
        put(&output->buffer, moved->items[i].data.len, moved->items[i].data.data);
    }
}

static sb_status add_entry(sb_exporter *exporter, Onnx__TensorProto *tensor, const char *key, const char *value,
                           sb_error *error) {
    Onnx__StringStringEntryProto *entry = sb_new_StringStringEntryProto(exporter, error);
    if (entry == NULL)
        return SB_ERROR_OUT_OF_MEMORY;
    entry->key = (char *)(uintptr_t)key;
    entry->value = sb_exporter_copy(exporter, value, strlen(value) + 1, error);
    tensor->external_data[tensor->n_external_data++] = entry;
    return entry->value != NULL ? SB_OK : SB_ERROR_OUT_OF_MEMORY;
}

static sb_status move_data(sb_exporter *exporter, Onnx__TensorProto *tensor, const char *location, size_t offset,
                           sb_error *error) {
    char number[32];
    tensor->external_data = sb_exporter_room(exporter, 3, sizeof *tensor->external_data, error);
    if (tensor->external_data == NULL)
        return SB_ERROR_OUT_OF_MEMORY;
    SB_TRY(add_entry(exporter, tensor, "location", location, error));
    snprintf(number, sizeof number, "%zu", offset);
    SB_TRY(add_entry(exporter, tensor, "offset", number, error));
    snprintf(number, sizeof number, "%zu", tensor->raw_data.len);
    SB_TRY(add_entry(exporter, tensor, "length", number, error));
    tensor->has_data_location = 1;
    tensor->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    tensor->has_raw_data = 0;
    return SB_OK;
}

/* Moves the larger initialisers out, each to the next page. */
static sb_status move_all(sb_exporter *exporter, const char *location, moved *moved, sb_error *error) {
    size_t end = 0;
    moved->items = sb_exporter_room(exporter, exporter->initialiser_count, sizeof *moved->items, error);
    if (moved->items == NULL)
        return SB_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < exporter->initialiser_count; i++) {
        Onnx__TensorProto *tensor = exporter->initialisers[i];
        if (!tensor->has_raw_data || tensor->raw_data.len < LEAST_EXTERNAL_BYTES)
            continue;
        size_t offset = (end + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
        moved->items[moved->count++] = (struct moved_data){tensor->raw_data, offset};
        end = offset + tensor->raw_data.len;
        SB_TRY(move_data(exporter, tensor, location, offset, error));
    }
    return SB_OK;
}

static sb_status write_model(const Onnx__ModelProto *model, const char *path, sb_error *error) {
    sb_replacement file;
    SB_TRY(sb_replacement_begin(path, &file, error));
    sb_status status = fill_file(&file, fill_model, model, error);
    if (status == SB_OK)
        return sb_replacement_commit(&file, error);
    sb_replacement_abandon(&file);
    return status;
}

/* The model's temporary file is complete before the data take their name. */
static sb_status write_both(const Onnx__ModelProto *model, const char *path, const moved *moved, const char *data_path,
                            sb_error *error) {
    sb_replacement file, data;
    SB_TRY(sb_replacement_begin(path, &file, error));
    sb_status status = sb_replacement_begin(data_path, &data, error);
    if (status == SB_OK) {
        status = fill_file(&data, fill_data, moved, error);
        if (status == SB_OK)
            status = fill_file(&file, fill_model, model, error);
        if (status == SB_OK)
            status = sb_replacement_commit(&data, error);
        else
            sb_replacement_abandon(&data);
    }
    if (status != SB_OK) {
        sb_replacement_abandon(&file);
        return status;
    }
    status = sb_replacement_commit(&file, error);
    if (status != SB_OK)
        (void)unlink(data_path);
    return status;
}

static sb_status write_with_data(sb_exporter *exporter, const Onnx__ModelProto *model, const char *path, size_t largest,
                                 sb_error *error) {
    moved moved = {0};
    size_t room = strlen(path) + sizeof ".data";
    char *data_path = sb_exporter_room(exporter, room, 1, error);
    if (data_path == NULL)
        return SB_ERROR_OUT_OF_MEMORY;
    snprintf(data_path, room, "%s.data", path);
    const char *slash = strrchr(data_path, '/');
    SB_TRY(move_all(exporter, slash != NULL ? slash + 1 : data_path, &moved, error));
    size_t bytes = onnx__model_proto__get_packed_size(model);
    if (bytes > largest)
        return sb_fail(
            error, SB_ERROR_UNSUPPORTED,
            "the model has %zu bytes beside the weights that can lie in a file of their own, and %zu are the "
            "most",
            bytes, largest);
    return write_both(model, path, &moved, data_path, error);
}

static sb_status save(sb_exporter *exporter, const sb_graph *graph, const sb_model_metadata *metadata, const char *path,
                      size_t largest, sb_error *error) {
    Onnx__ModelProto *model;
    SB_TRY(make_model(exporter, graph, metadata, &model, error));
    if (onnx__model_proto__get_packed_size(model) <= largest)
        return write_model(model, path, error);
    return write_with_data(exporter, model, path, largest, error);
}

sb_status sb_onnx_save(const sb_graph *graph, const sb_model_metadata *metadata, const char *path, size_t largest,
                       sb_error *error) {
    sb_exporter exporter = {0};
    sb_arena_begin(&exporter.arena, SIZE_MAX);
    sb_status status = save(&exporter, graph, metadata, path, largest, error);
    for (size_t i = 0; i < exporter.kept_count; i++)
        sb_tensor_release(exporter.kept[i]);
    sb_free(exporter.kept);
    sb_free(exporter.sets);
    sb_free(exporter.initialisers);
    sb_names_clear(&exporter.names);
    sb_arena_end(&exporter.arena);
    return status;
}
