/* Where members lie in the structs that the driver reads: IV_CUDA_LAYOUT(struct, member, offset)
 * for the last member of each, which moves when anything before it does, and IV_CUDA_SIZE(struct,
 * bytes). Checked against Invar's declarations and against NVIDIA's. Included more than once, so
 * without a guard. */
IV_CUDA_SIZE(CUlaunchConfig, 56)
IV_CUDA_LAYOUT(CUlaunchConfig, hStream, 32)
IV_CUDA_LAYOUT(CUlaunchConfig, numAttrs, 48)
IV_CUDA_SIZE(CUDA_KERNEL_NODE_PARAMS, 72)
IV_CUDA_LAYOUT(CUDA_KERNEL_NODE_PARAMS, kernelParams, 40)
IV_CUDA_LAYOUT(CUDA_KERNEL_NODE_PARAMS, ctx, 64)
IV_CUDA_SIZE(CUDA_MEMSET_NODE_PARAMS, 40)
IV_CUDA_LAYOUT(CUDA_MEMSET_NODE_PARAMS, elementSize, 20)
IV_CUDA_LAYOUT(CUDA_MEMSET_NODE_PARAMS, height, 32)
IV_CUDA_SIZE(CUDA_MEMCPY3D, 200)
IV_CUDA_LAYOUT(CUDA_MEMCPY3D, srcHeight, 80)
IV_CUDA_LAYOUT(CUDA_MEMCPY3D, dstDevice, 136)
IV_CUDA_LAYOUT(CUDA_MEMCPY3D, Depth, 192)
