/* Device memory that the host cannot touch: for programs over the fake driver. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fake_internal.h"

/* Guarded blocks of device memory lie in pages of their own, with one behind them that nothing may touch, and can be
 * touched only while the device works: code of the host that follows an address of the device ends the program.
 * AddressSanitizer, which watches blocks of the heap, sees what kernels do wrong instead. */
bool is_guarded(const memory *block) {
    return block->object.kind == MEMORY && fake.guarded;
}

#define PAGE 4096

static size_t guarded_size(const memory *block) {
    return (block->size + PAGE - 1) / PAGE * PAGE + PAGE;
}

/* Blocks end where their last page does, up to the alignment of 256, so that reading on from them touches the next. */
static char *pages_of(const memory *block) {
    return (char *)((uintptr_t)block->bytes / PAGE * PAGE);
}

void make_guarded(memory *block) {
    size_t rounded = (block->size + 255) / 256 * 256, size = guarded_size(block);
    char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        abort();
    block->bytes = pages + size - PAGE - rounded;
    memset(block->bytes, 0xa5, block->size);
    mprotect(pages, size, PROT_NONE);
}

void free_bytes(memory *block) {
    if (is_guarded(block))
        munmap(pages_of(block), guarded_size(block));
    else
        free(block->bytes);
}

void allow_device_memory(bool allowed) {
    for (object *object = fake.objects; object != NULL && fake.guarded; object = object->next) {
        const memory *block = (const memory *)object;
        if (object->kind == MEMORY)
            mprotect(pages_of(block), guarded_size(block) - PAGE, allowed ? PROT_READ | PROT_WRITE : PROT_NONE);
    }
}
