#include "coroutine.h"

#include <stdint.h>

#ifdef COROUTINE_BY_STACK_POINTER

/* Pushes the registers that a call keeps, exchanges the stacks and pops those of the other one. The rounding modes and
 * the like are the same in all coroutines. */
__attribute__((visibility("hidden"))) void coroutine_exchange(void **from, void *to);

#if defined(__x86_64__)
enum { ENTRY = 6, FRAME = 8 }; /* words; a function begins 8 bytes below a multiple of 16 */
__asm__(".text\n"
        ".hidden coroutine_exchange\n"
        ".globl coroutine_exchange\n"
        ".type coroutine_exchange, @function\n"
        "coroutine_exchange:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size coroutine_exchange, . - coroutine_exchange\n");
#else
enum { ENTRY = 11, FRAME = 20 }; /* words; x30 is where to go on */
__asm__(".text\n"
        ".hidden coroutine_exchange\n"
        ".globl coroutine_exchange\n"
        ".type coroutine_exchange, %function\n"
        "coroutine_exchange:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x2, sp\n"
        "    str x2, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size coroutine_exchange, . - coroutine_exchange\n");
#endif

void coroutine_prepare(coroutine *coroutine, void (*entry)(void), char *stack, size_t bytes) {
    uint64_t *top = (uint64_t *)((uintptr_t)(stack + bytes) / 16 * 16), *frame = top - FRAME;
    for (int word = 0; word < FRAME; word++)
        frame[word] = word == ENTRY ? (uint64_t)(uintptr_t)entry : 0;
    coroutine->stack_pointer = frame;
}

void coroutine_switch(coroutine *from, coroutine *to) {
    coroutine_exchange(&from->stack_pointer, to->stack_pointer);
}

#else

void coroutine_prepare(coroutine *coroutine, void (*entry)(void), char *stack, size_t bytes) {
    getcontext(&coroutine->context);
    coroutine->context.uc_stack.ss_sp = stack;
    coroutine->context.uc_stack.ss_size = bytes;
    coroutine->context.uc_link = NULL;
    makecontext(&coroutine->context, entry, 0);
}

void coroutine_switch(coroutine *from, coroutine *to) {
    swapcontext(&from->context, &to->context);
}

#endif
