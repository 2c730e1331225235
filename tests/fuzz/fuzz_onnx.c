/* Any bytes as an ONNX model: refused with a report, or loaded; and nothing stays behind. */
#include "base/allocation.h"
#include "fuzz/fuzz.h"
#include "onnx/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int64_t before = iv_allocation_count().live_blocks;
    iv_scope *scope = NULL;
    iv_graph *graph = NULL;
    iv_onnx_info info = {0};
    iv_error error = {0};
    FUZZ_CHECK(iv_scope_create(&scope, &error) == IV_OK);
    iv_status status = iv_onnx_load(data, size, NULL, scope, &graph, &info, &error);
    FUZZ_CHECK((status == IV_OK) == (graph != NULL));
    FUZZ_CHECK(status == IV_OK || (error.status == status && error.message[0] != '\0'));
    /* Sizes are checked before memory is asked for, and no file makes the importer contradict
     * itself. */
    FUZZ_CHECK(status != IV_ERROR_OUT_OF_MEMORY && status != IV_ERROR_INTERNAL);
    iv_graph_destroy(graph);
    iv_onnx_info_clear(&info);
    iv_scope_destroy(scope);
    FUZZ_CHECK(iv_allocation_count().live_blocks == before);
    return 0;
}
