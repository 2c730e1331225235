/* Versions: of the file format, and of the operator sets. */
#include <inttypes.h>
#include <string.h>

#include "onnx/importer.h"

/* Operators whose first definition still holds in operator set 6, so that older imports of them
 * mean the same (from the "since_version" lists of ONNX's operator schemas). */
static const char *const unchanged[] = {
    "And",
    "ArgMax",
    "ArgMin",
    "AveragePool",
    "Constant",
    "Conv",
    "ConvTranspose",
    "DepthToSpace",
    "Equal",
    "Flatten",
    "Gather",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "Greater",
    "Hardmax",
    "Identity",
    "If",
    "LRN",
    "LSTM",
    "Less",
    "LogSoftmax",
    "Loop",
    "LpNormalization",
    "MatMul",
    "MaxPool",
    "MaxRoiPool",
    "Not",
    "Or",
    "Pow",
    "RNN",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
    "Shape",
    "Size",
    "Slice",
    "Softmax",
    "Softplus",
    "Softsign",
    "SpaceToDepth",
    "Squeeze",
    "TopK",
    "Transpose",
    "Unsqueeze",
    "Upsample",
    "Xor",
};

/* The highest version that the list imports of the domain; 0 when it imports none. */
static int64_t imported(size_t count, Onnx__OperatorSetIdProto *const *imports, const char *domain) {
    int64_t highest = 0;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(sb_onnx_domain(imports[i]->domain), domain) == 0 && imports[i]->version > highest)
            highest = imports[i]->version;
    }
    return highest;
}

static bool is_unchanged(const char *operator_name) {
    for (size_t i = 0; i < sizeof unchanged / sizeof *unchanged; i++) {
        if (strcmp(unchanged[i], operator_name) == 0)
            return true;
    }
    return false;
}

/* A newer set is taken for the newest known: few operators change their meaning from one to the next. */
static sb_status read_as_newest(sb_importer *importer, const Onnx__NodeProto *node, const char *name, int64_t *version,
                                sb_error *error) {
    int64_t asked = *version;
    *version = SB_NEWEST_OPSET;
    if (importer->newer_noted)
        return SB_OK;
    importer->newer_noted = true;
    return sb_warn(importer->warnings, error,
                   "node '%.200s' (%.100s) is of operator set %" PRId64
                   "; it and all others of such a set are read as of %d, the "
                   "newest known",
                   name, node->op_type, asked, SB_NEWEST_OPSET);
}

static sb_status check_standard(sb_importer *importer, const Onnx__NodeProto *node, const char *name, int64_t *version,
                                sb_error *error) {
    if (*version > SB_NEWEST_OPSET)
        return read_as_newest(importer, node, name, version, error);
    if (*version >= SB_OLDEST_OPSET)
        return SB_OK;
    if (!is_unchanged(node->op_type))
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "node %.200s (%.100s) is of operator set %" PRId64 ", and %d is the oldest "
                       "supported for it: convert the model with onnx.version_converter",
                       name, node->op_type, *version, SB_OLDEST_OPSET);
    *version = SB_OLDEST_OPSET;
    return SB_OK;
}

sb_status sb_onnx_version(sb_importer *importer, const sb_environment *environment, const Onnx__NodeProto *node,
                          const char *name, int *version, sb_error *error) {
    const Onnx__ModelProto *model = importer->model;
    const char *domain = sb_onnx_domain(node->domain);
    int64_t found = 0;
    if (environment->call != NULL) {
        const Onnx__FunctionProto *function = environment->call->function->proto;
        found = imported(function->n_opset_import, function->opset_import, domain);
    }
    if (found == 0)
        found = imported(model->n_opset_import, model->opset_import, domain);
    if (found == 0 && model->ir_version < 3)
        found = 1; /* files of that time could not say */
    if (found <= 0 || found > INT32_MAX)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %.200s (%.100s): the model imports no version of its operator set '%.100s'", name,
                       node->op_type, domain);
    if (domain[0] == '\0')
        SB_TRY(check_standard(importer, node, name, &found, error));
    *version = (int)found;
    return SB_OK;
}
