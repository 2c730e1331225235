/* Families of operators: what gets one colour in pictures and charts. */
#include <stddef.h>
#include <string.h>

#include "picture.h"

typedef struct family {
    const char *name, *color;
    const char *ops; /* " Name Name " */
} family;

/* The last family takes what the others do not name. All colours carry white text with a contrast
 * of at least 4.5. */
static const family families[] = {
    {"contraction", "#1f5fae",
     " Conv ConvTranspose ConvInteger QLinearConv DeformConv MatMul MatMulF32 MatMulInteger QLinearMatMul "
     "Gemm Einsum CausalConvWithState "
     "Attention LinearAttention FlexAttention DFT STFT "},
    {"recurrent", "#6b3fa0", " RNN GRU LSTM "},
    {"activation", "#a8324a",
     " Relu LeakyRelu PRelu Elu Selu Celu Gelu Sigmoid HardSigmoid HardSwish Mish Softplus "
     "Softsign Tanh "
     "ThresholdedRelu Clip Softmax LogSoftmax Hardmax Erf Shrink Swish SwiGLU "},
    {"normalisation", "#1c7c54",
     " BatchNormalization InstanceNormalization LayerNormalization GroupNormalization "
     "RMSNormalization "
     "LpNormalization LRN MeanVarianceNormalization Dropout "},
    {"pooling and reduction", "#7a6410",
     " MaxPool AveragePool LpPool GlobalMaxPool GlobalAveragePool GlobalLpPool MaxUnpool "
     "MaxRoiPool RoiAlign "
     "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum "
     "ReduceLogSumExp "
     "ReduceSumSquare ArgMax ArgMin CumSum TopK NonMaxSuppression Unique "},
    {"arithmetic", "#a34f10",
     " Add Sub Mul Div Mod Pow Neg Abs Sign Sqrt Reciprocal Exp Log Sin Cos Tan Asin Acos Atan "
     "Sinh Cosh Asinh "
     "Acosh Atanh Ceil Floor Round Sum Mean Max Min Equal Greater Less GreaterOrEqual LessOrEqual "
     "And Or Xor Not "
     "Where IsNaN IsInf BitShift BitwiseAnd BitwiseOr BitwiseXor BitwiseNot Det "
     "RotaryEmbedding "},
    {"quantisation and types", "#8a2f7f",
     " QuantizeLinear DequantizeLinear DynamicQuantizeLinear Cast CastLike BitCast "},
    {"movement", "#566273",
     " Reshape Flatten Squeeze Unsqueeze Transpose Slice Split Concat Gather GatherElements "
     "GatherND Scatter "
     "ScatterElements ScatterND TensorScatter Pad Expand Tile DepthToSpace SpaceToDepth Identity Shape Size "
     "Constant "
     "ConstantOfShape Range EyeLike OneHot Compress Resize Upsample ReverseSequence Trilu NonZero "
     "Col2Im "
     "CenterCropPad GridSample AffineGrid "},
    {"control and sequences", "#35363a",
     " If Loop Scan SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert "
     "SequenceLength "
     "SequenceMap SplitToSequence ConcatFromSequence Optional OptionalGetElement "
     "OptionalHasElement "},
    {"fused", "#0f6f7c", " Fused "},
    {"other", "#6d6d6d", ""},
};

int op_family_count(void) {
    return sizeof families / sizeof families[0];
}

int op_family(const char *op) {
    int last = op_family_count() - 1;
    size_t length = strlen(op);
    for (int i = 0; i < last && length > 0; i++) {
        for (const char *at = families[i].ops; (at = strstr(at, op)) != NULL; at++) {
            if (at[-1] == ' ' && at[length] == ' ')
                return i;
        }
    }
    return last;
}

const char *op_family_name(int family) {
    return families[family].name;
}

const char *op_family_color(int family) {
    return families[family].color;
}
