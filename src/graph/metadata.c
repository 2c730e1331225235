#include "graph/metadata.h"

#include "base/allocation.h"

void sb_metadata_clear(sb_model_metadata *metadata) {
    const char *texts[] = {metadata->producer_name, metadata->producer_version, metadata->domain, metadata->graph_name,
                           metadata->description};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        sb_free((void *)texts[i]);
    for (size_t i = 0; i < metadata->opset_count; i++)
        sb_free((void *)metadata->opsets[i].domain);
    sb_free((void *)metadata->opsets);
    for (size_t i = 0; i < metadata->property_count; i++) {
        sb_free((void *)metadata->properties[i].key);
        sb_free((void *)metadata->properties[i].value);
    }
    sb_free((void *)metadata->properties);
    *metadata = (sb_model_metadata){0};
}
