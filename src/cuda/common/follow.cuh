/* Dependent launch (kernel.cuh) where some threads of a block have something to do that waits for nobody: the kernel behind may be
 * launched, and all other threads wait until those ahead have ended. A kernel ends when all of its threads have: who waits for it still
 * waits for all that came before it, since a thread of each block has waited. */
#ifndef SB_CUDA_COMMON_FOLLOW_CUH
#define SB_CUDA_COMMON_FOLLOW_CUH

#if defined(__CUDA_ARCH__)
#define SB_CUDA_DEPEND_UNLESS(waits_for_nobody)                                                                        \
    do {                                                                                                               \
        asm volatile("griddepcontrol.launch_dependents; // 9.0" ::: "memory");                                         \
        if (!(waits_for_nobody))                                                                                       \
            asm volatile("griddepcontrol.wait; // 9.0" ::: "memory");                                                  \
    } while (0)
#else
#define SB_CUDA_DEPEND_UNLESS(waits_for_nobody) (void)(waits_for_nobody)
#endif

#endif
