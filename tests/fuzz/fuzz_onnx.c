/* Any bytes as an ONNX model: refused with a report, or loaded; and nothing stays behind. */
#include "base/allocation.h"
#include "fuzz/fuzz.h"
#include "onnx/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int64_t before = sb_allocation_count().live_blocks;
    sb_scope *scope = NULL;
    sb_graph *graph = NULL;
    sb_model_metadata metadata = {0};
    sb_warnings warnings = {0};
    sb_error error = {0};
    FUZZ_CHECK(sb_scope_create(&scope, &error) == SB_OK);
    sb_status status = sb_onnx_load(data, size, NULL, scope, &graph, &metadata, &warnings, &error);
    FUZZ_CHECK((status == SB_OK) == (graph != NULL));
    FUZZ_CHECK(status == SB_OK || (error.status == status && error.message[0] != '\0'));
    /* Sizes are checked before memory is asked for, and no file makes the importer contradict itself. */
    FUZZ_CHECK(status != SB_ERROR_OUT_OF_MEMORY && status != SB_ERROR_INTERNAL);
    sb_graph_destroy(graph);
    FUZZ_CHECK(warnings.count <= SB_MOST_WARNINGS + 1);
    for (size_t i = 0; i < warnings.count; i++)
        FUZZ_CHECK(warnings.texts[i][0] != '\0');
    sb_warnings_clear(&warnings);
    sb_metadata_clear(&metadata);
    sb_scope_destroy(scope);
    FUZZ_CHECK(sb_allocation_count().live_blocks == before);
    return 0;
}
