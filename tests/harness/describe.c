/* Lines of --list: the operator, dtypes, extents and layouts of its inputs, values that are known beforehand, attributes,
 * outputs, what the elements are like, and forced tiles. */
#include <inttypes.h>

#include "cuda/contraction/tiles.h"
#include "harness/harness.h"

#define MOST_VALUES 8 /* of a list that is known beforehand */

/* ---- tensors ---- */

/* How a tensor lies, as far as strides tell: several words, or none where it is packed. */
static void print_layout(const sb_tensor *tensor) {
    int64_t extent = 1, least = INT64_MAX, last = INT64_MAX;
    bool permuted = false, reversed = false, broadcast = false;
    for (int d = 0; d < tensor->rank; d++) {
        int64_t stride = llabs(tensor->strides[d]);
        if (tensor->dims[d] == 0)
            return;
        if (tensor->dims[d] == 1)
            continue;
        reversed = reversed || tensor->strides[d] < 0;
        broadcast = broadcast || stride == 0;
        permuted = permuted || (stride != 0 && stride > last);
        last = stride != 0 ? stride : last;
        extent += stride * (tensor->dims[d] - 1);
        least = stride != 0 && stride < least ? stride : least;
    }
    bool gaps = !broadcast && extent > sb_tensor_elements(tensor);
    bool offset = !reversed && tensor->data != (char *)tensor->storage->data;
    printf("%s%s%s%s%s", permuted ? " permuted" : "", reversed ? " reversed" : "", broadcast ? " repeated" : "",
           gaps ? " gaps" : "", offset ? " offset" : "");
}

/* Lists that say what the operator does: shapes, axes, bounds. */
static void print_known(const sb_tensor *tensor) {
    int64_t count = sb_tensor_elements(tensor);
    bool listed = count <= MOST_VALUES && tensor->rank < 2 && sb_tensor_is_contiguous(tensor) &&
                  (tensor->dtype == SB_S64 || tensor->dtype == SB_F32);
    printf(listed ? " known={" : " known");
    for (int64_t i = 0; i < count && listed; i++) {
        if (tensor->dtype == SB_S64)
            printf("%s%" PRId64, i > 0 ? "," : "", ((const int64_t *)(const void *)tensor->data)[i]);
        else
            printf("%s%.9g", i > 0 ? "," : "", (double)((const float *)(const void *)tensor->data)[i]);
    }
    printf(listed ? "}" : "");
}

static void print_tensor(const sb_tensor *tensor, bool known) {
    char dims[SB_DIMS_TEXT_BYTES];
    if (tensor == NULL) {
        printf("-");
        return;
    }
    printf("%s%s", sb_dtype_name(tensor->dtype), sb_dims_text(tensor->rank, tensor->dims, dims));
    print_layout(tensor);
    if (known)
        print_known(tensor);
}

static void print_inputs(sb_tensor *const *inputs, int count, uint64_t known) {
    printf("(");
    for (int i = 0; i < count; i++) {
        printf(i > 0 ? ", " : "");
        print_tensor(inputs[i], (known >> i & 1) != 0);
    }
    printf(")");
}

/* ---- attributes ---- */

static void print_attribute(const sb_attribute *attribute) {
    printf(" %s=%s", attribute->name, attribute->scalar ? "" : "[");
    for (int64_t i = 0; i < attribute->count; i++) {
        printf(i > 0 ? "," : "");
        if (attribute->kind == SB_ATTRIBUTE_INTS)
            printf("%" PRId64, attribute->ints[i]);
        else if (attribute->kind == SB_ATTRIBUTE_FLOATS)
            printf("%.9g", (double)attribute->floats[i]);
        else if (attribute->kind == SB_ATTRIBUTE_STRINGS)
            printf("%s", attribute->strings[i]);
    }
    if (attribute->kind == SB_ATTRIBUTE_TENSOR)
        print_tensor(attribute->tensor, true);
    printf("%s", attribute->scalar ? "" : "]");
}

static void print_attributes(const sb_attributes *attributes) {
    for (size_t i = 0; i < attributes->count; i++)
        print_attribute(&attributes->items[i]);
}

/* ---- cases ---- */

static void end_line(const harness *h) {
    static const char *const names[] = {"ordinary", "canceling", "wide", "tiny", "special", "awkward", "numbers"};
    const char *before = " values=";
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if ((h->values >> i & 1) == 0)
            continue;
        printf("%s%s", before, names[i]);
        before = "+";
    }
    if (h->first_tile >= 0)
        printf(" tiles=%s", sb_cuda_tile_at(h->first_tile)->name);
    else if (h->last_tile >= 0)
        printf(" tiles=each");
    printf("\n");
}

void harness_describe(const harness *h, const harness_case *test) {
    printf("%s %s-%d", h->name, test->op, test->version);
    print_inputs(test->inputs, test->count, test->constants);
    print_attributes(&test->attributes);
    if (test->outputs > 1)
        printf(" outputs=%d", test->outputs);
    if (test->place != NULL) {
        printf(" onto ");
        print_tensor(test->place, false);
    }
    end_line(h);
}

void harness_describe_graph(const harness *h, const sb_graph *graph, sb_tensor *const *inputs) {
    printf("%s ", h->name);
    for (size_t n = 0; n < graph->node_count; n++) {
        const sb_node *node = graph->nodes[n];
        printf("%s%s", n > 0 ? "+" : "", node->op->name);
        if (node->attributes.count > 0) {
            printf("{");
            print_attributes(&node->attributes);
            printf(" }");
        }
    }
    print_inputs(inputs, (int)graph->input_count, 0);
    end_line(h);
}

void harness_describe_raw(const harness *h, const char *what, sb_tensor *const *inputs, int count) {
    printf("%s %s", h->name, what);
    print_inputs(inputs, count, 0);
    end_line(h);
}
