/* Writing models: what a program keeps, made into a file by the exporter. */
#include <samebit/onnx.h>

#include "onnx/export.h"
#include "runtime/model.h"

sb_status sb_model_save(const sb_model *model, const char *path, sb_error *error) {
    const sb_model_entry *entry = &model->entries[0];
    if (model->graphs.count != 1)
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "the model has %zu entry graphs, and an ONNX file has one: build a model of %.200s alone",
                       model->graphs.count, entry->name);
    if (entry->graph->read_count + entry->graph->update_count != 0) {
        const sb_variable_use *use =
            entry->graph->read_count != 0 ? &entry->graph->reads[0] : &entry->graph->updates[0];
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "the model has variables (%.200s), which ONNX files do not: make them inputs and outputs",
                       model->graphs.variables.items[use->variable].name);
    }
    SB_TRY(sb_program_keep_elements(entry->program, error));
    return sb_onnx_save(entry->graph, sb_model_describe(model), path, SB_ONNX_LARGEST_FILE, error);
}
