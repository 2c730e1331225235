/* Functions that stop in their midst and go on later, each on a stack of its own. */
#ifndef COROUTINE_H
#define COROUTINE_H

#include <stddef.h>

#if defined(__x86_64__) || defined(__aarch64__)
/* Switching costs a few instructions; swapcontext asks the system twice for the mask of signals, which takes as long as
 * everything else that kernels do here. */
#define COROUTINE_BY_STACK_POINTER
typedef struct coroutine {
    void *stack_pointer; /* what a call keeps lies there */
} coroutine;
#else
#include <ucontext.h>
typedef struct coroutine {
    ucontext_t context;
} coroutine;
#endif

/** Makes a coroutine that begins with `entry`, which must not return, when it is switched to first. */
void coroutine_prepare(coroutine *coroutine, void (*entry)(void), char *stack, size_t bytes);
/** Leaves what runs to `from`, to be switched to again, and goes on with `to`. */
void coroutine_switch(coroutine *from, coroutine *to);

#endif
