/* The functions of the CUDA driver that Samebit uses: SB_CUDA_CALL(name, version, arguments) for
 * each, all returning CUresult. `version` is the release of the interface in which the function got
 * these arguments: asking the driver for that release gives this signature from any newer driver
 * too. Included more than once, so without a guard. */
SB_CUDA_CALL(cuGetErrorName, 6000, (CUresult result, const char **name))
SB_CUDA_CALL(cuGetErrorString, 6000, (CUresult result, const char **text))
SB_CUDA_CALL(cuInit, 2000, (unsigned int flags))

SB_CUDA_CALL(cuDeviceGetCount, 2000, (int *count))
SB_CUDA_CALL(cuDeviceGet, 2000, (CUdevice * device, int ordinal))
SB_CUDA_CALL(cuDeviceGetName, 2000, (char *name, int bytes, CUdevice device))
SB_CUDA_CALL(cuDeviceTotalMem, 3020, (size_t * bytes, CUdevice device))
SB_CUDA_CALL(cuDeviceGetAttribute, 2000, (int *value, CUdevice_attribute attribute, CUdevice device))

SB_CUDA_CALL(cuDevicePrimaryCtxRetain, 7000, (CUcontext * context, CUdevice device))
SB_CUDA_CALL(cuDevicePrimaryCtxRelease, 11000, (CUdevice device))
SB_CUDA_CALL(cuCtxPushCurrent, 4000, (CUcontext context))
SB_CUDA_CALL(cuCtxPopCurrent, 4000, (CUcontext * context))
SB_CUDA_CALL(cuCtxGetCurrent, 4000, (CUcontext * context))

SB_CUDA_CALL(cuMemGetInfo, 3020, (size_t * unused, size_t *total))
SB_CUDA_CALL(cuMemAlloc, 3020, (CUdeviceptr * address, size_t bytes))
SB_CUDA_CALL(cuMemFree, 3020, (CUdeviceptr address))
SB_CUDA_CALL(cuMemHostAlloc, 2020, (void **block, size_t bytes, unsigned int flags))
SB_CUDA_CALL(cuMemFreeHost, 2000, (void *block))
SB_CUDA_CALL(cuPointerGetAttributes, 7000,
             (unsigned int count, CUpointer_attribute *attributes, void **values, CUdeviceptr address))
SB_CUDA_CALL(cuTensorMapEncodeTiled, 12000,
             (CUtensorMap * map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *dims,
              const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *element_strides,
              CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
              CUtensorMapFloatOOBfill fill))
SB_CUDA_CALL(cuTensorMapEncodeIm2col, 12000,
             (CUtensorMap * map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *dims,
              const cuuint64_t *strides, const int *lower_corner, const int *upper_corner, cuuint32_t channels,
              cuuint32_t pixels, const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
              CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill))
SB_CUDA_CALL(cuMemcpyHtoDAsync, 3020, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))
SB_CUDA_CALL(cuMemcpyDtoHAsync, 3020, (void *to, CUdeviceptr from, size_t bytes, CUstream stream))
SB_CUDA_CALL(cuMemcpyDtoDAsync, 3020, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))
SB_CUDA_CALL(cuMemsetD8Async, 3020, (CUdeviceptr to, unsigned char value, size_t count, CUstream stream))

SB_CUDA_CALL(cuStreamCreate, 2000, (CUstream * stream, unsigned int flags))
SB_CUDA_CALL(cuStreamDestroy, 4000, (CUstream stream))
SB_CUDA_CALL(cuStreamSynchronize, 2000, (CUstream stream))
SB_CUDA_CALL(cuStreamWaitEvent, 3020, (CUstream stream, CUevent event, unsigned int flags))
SB_CUDA_CALL(cuStreamGetCtx, 9020, (CUstream stream, CUcontext *context))
SB_CUDA_CALL(cuStreamBeginCapture, 10010, (CUstream stream, CUstreamCaptureMode mode))
SB_CUDA_CALL(cuStreamEndCapture, 10000, (CUstream stream, CUgraph *graph))

SB_CUDA_CALL(cuEventCreate, 2000, (CUevent * event, unsigned int flags))
SB_CUDA_CALL(cuEventRecord, 2000, (CUevent event, CUstream stream))
SB_CUDA_CALL(cuEventQuery, 2000, (CUevent event))
SB_CUDA_CALL(cuEventSynchronize, 2000, (CUevent event))
SB_CUDA_CALL(cuEventElapsedTime, 2000, (float *milliseconds, CUevent start, CUevent end))
SB_CUDA_CALL(cuEventDestroy, 4000, (CUevent event))

SB_CUDA_CALL(cuModuleLoadDataEx, 2010,
             (CUmodule * module, const void *image, unsigned int count, CUjit_option *options, void **values))
SB_CUDA_CALL(cuModuleUnload, 2000, (CUmodule module))
SB_CUDA_CALL(cuModuleGetFunction, 2000, (CUfunction * function, CUmodule module, const char *name))
SB_CUDA_CALL(cuFuncGetAttribute, 2020, (int *value, CUfunction_attribute attribute, CUfunction function))
SB_CUDA_CALL(cuFuncSetAttribute, 9000, (CUfunction function, CUfunction_attribute attribute, int value))
SB_CUDA_CALL(cuLaunchKernelEx, 11060,
             (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra))

SB_CUDA_CALL(cuGraphCreate, 10000, (CUgraph * graph, unsigned int flags))
SB_CUDA_CALL(cuGraphDestroy, 10000, (CUgraph graph))
SB_CUDA_CALL(cuGraphAddKernelNode, 12000,
             (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
              const CUDA_KERNEL_NODE_PARAMS *parameters))
SB_CUDA_CALL(cuGraphAddDependencies, 12030,
             (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data, size_t count))
SB_CUDA_CALL(cuGraphAddMemcpyNode, 10000,
             (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
              const CUDA_MEMCPY3D *copy, CUcontext context))
SB_CUDA_CALL(cuGraphAddMemsetNode, 10000,
             (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
              const CUDA_MEMSET_NODE_PARAMS *parameters, CUcontext context))
SB_CUDA_CALL(cuGraphGetNodes, 10000, (CUgraph graph, CUgraphNode *nodes, size_t *count))
SB_CUDA_CALL(cuGraphInstantiateWithFlags, 11040, (CUgraphExec * executable, CUgraph graph, unsigned long long flags))
SB_CUDA_CALL(cuGraphExecDestroy, 10000, (CUgraphExec executable))
SB_CUDA_CALL(cuGraphLaunch, 10000, (CUgraphExec executable, CUstream stream))
