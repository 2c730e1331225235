/* Random numbers: each is a function of the seed and of its element's number. */
#include "cuda/kernels/random_parameters.h"
#include "cuda/kernels/index.cuh"

IV_CUDA_KERNEL(iv_cuda_random_uniform, iv_cuda_random, p) {
    IV_CUDA_EACH(index, p->elements)
        iv_number_store(p->dtype, p->out, index, iv_random_uniform(&p->params, p->dtype, index));
}

IV_CUDA_KERNEL(iv_cuda_random_normal, iv_cuda_random, p) {
    IV_CUDA_EACH(index, p->elements)
        iv_number_store(p->dtype, p->out, index, iv_random_normal(&p->params, p->dtype, index));
}

IV_CUDA_KERNEL(iv_cuda_random_bernoulli, iv_cuda_random, p) {
    IV_CUDA_EACH(index, p->elements)
        iv_number_store(
            p->dtype, p->out, index,
            iv_random_bernoulli(&p->params, iv_number_load(p->in_dtype, p->in, index), index));
}

IV_CUDA_KERNEL(iv_cuda_random_class, iv_cuda_random, p) {
    IV_CUDA_EACH(index, p->elements) {
        int64_t row = index;
        iv_cuda_take(&row, p->params.sample_size);
        iv_number_store(p->dtype, p->out, index,
                        (double)iv_random_class(&p->params, p->in_dtype, p->in, p->classes, row,
                                                index));
    }
}
