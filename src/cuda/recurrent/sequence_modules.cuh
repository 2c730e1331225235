/* The kernels of a source that defines KERNEL(dtype, suffix, PRODUCTS) for chains of threads. Included once by each. */
/* The host has all modules in one. */
#if defined(SB_MODULE_f16) || !defined(__CUDACC__)
KERNEL(F16, f16, sequence_chains16<SB_F16>)
#endif
#if defined(SB_MODULE_bf16) || !defined(__CUDACC__)
KERNEL(BF16, bf16, sequence_chains16<SB_BF16>)
#endif
#if defined(SB_MODULE_f32) || !defined(__CUDACC__)
KERNEL(F32, f32, sequence_chains<float>)
#endif
#if defined(SB_MODULE_f64) || !defined(__CUDACC__)
KERNEL(F64, f64, sequence_chains<double>)
#endif
