/* The operands of QLinearMatMul's rescaling. For the host and for devices. */
#ifndef IV_OPS_RESCALE_OPERANDS_H
#define IV_OPS_RESCALE_OPERANDS_H

enum {
    IV_RESCALE_A_SCALE,
    IV_RESCALE_B_SCALE,
    IV_RESCALE_Y_SCALE,
    IV_RESCALE_Y_ZERO,
    IV_RESCALE_OPERANDS
};

#endif
