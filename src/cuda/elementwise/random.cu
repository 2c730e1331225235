/* Random numbers: each is a function of the seed and of its element's number. */
#include "cuda/common/index.cuh"
#include "cuda/elementwise/random_parameters.h"

SB_CUDA_KERNEL(sb_cuda_random_uniform, sb_cuda_random, p) {
    SB_CUDA_EACH(index, p->elements)
    sb_number_store(p->dtype, p->out, index, sb_random_uniform(&p->params, p->dtype, index));
}

SB_CUDA_KERNEL(sb_cuda_random_normal, sb_cuda_random, p) {
    SB_CUDA_EACH(index, p->elements)
    sb_number_store(p->dtype, p->out, index, sb_random_normal(&p->params, p->dtype, index));
}

SB_CUDA_KERNEL(sb_cuda_random_bernoulli, sb_cuda_random, p) {
    SB_CUDA_EACH(index, p->elements)
    sb_number_store(p->dtype, p->out, index,
                    sb_random_bernoulli(&p->params, sb_number_load(p->in_dtype, p->in, index), index));
}

SB_CUDA_KERNEL(sb_cuda_random_class, sb_cuda_random, p) {
    SB_CUDA_EACH(index, p->elements) {
        int64_t row = index;
        sb_cuda_take(&row, p->params.sample_size);
        sb_number_store(p->dtype, p->out, index,
                        (double)sb_random_class(&p->params, p->in_dtype, p->in, p->classes, row, index));
    }
}
