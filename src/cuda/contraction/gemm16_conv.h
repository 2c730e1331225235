/* Convolutions of 16 bits as products whose rows are brought by maps of pixels: gemm16_hopper.c has the shapes of their
 * tiles, conv16_hopper.c everything else. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_CONV_H
#define SB_CUDA_CONTRACTION_GEMM16_CONV_H

#include "cuda/contraction/gemm16.h"
#include "cuda/contraction/gemm16_hopper_parameters.h"
#include "cuda/contraction/hopper_code.h"

/** For tests: how many shapes of tiles there are for convolutions, and the one that is chosen from now on where it can
 * be; -1: the quickest. */
int sb_gemm16_conv_shapes(void);
void sb_gemm16_conv_force(int index);

/** Chooses the tiles of a convolution and fills p->product, but for the map of its A: of p->product.a_box_bytes / 128
 * pixels of 64 channels. The plan's A says where x lies, as if its rows lay apart; B is K-major, with k of as many 64s as
 * each kernel position needs, or of one kernel position's channels. Errors: DEVICE. */
sb_status sb_gemm16_conv_fill(sb_cuda_device *device, const sb_gemm_plan *plan, sb_gemm16_conv *p, int *chosen,
                              sb_error *error);
/** Gives it to the queue, as the launch of a schedule. */
sb_status sb_gemm16_conv_give(const sb_cuda_queue *queue, int step, const sb_gemm_plan *plan, const sb_gemm16_conv *p,
                              int chosen, sb_error *error);

#endif
