/* The operands of QLinearMatMul's rescaling. For the host and for devices. */
#ifndef SB_OPS_RESCALE_OPERANDS_H
#define SB_OPS_RESCALE_OPERANDS_H

enum { SB_RESCALE_A_SCALE, SB_RESCALE_B_SCALE, SB_RESCALE_Y_SCALE, SB_RESCALE_Y_ZERO, SB_RESCALE_OPERANDS };

#endif
