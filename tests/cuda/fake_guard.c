/* The memory of blocks: the device's, which the host cannot touch where a program asks for that, and pages that are there once
 * somebody writes them. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sanitizer.h"
#include "fake_internal.h"

/* Guarded blocks of device memory lie in pages of their own, with one behind them that nothing may touch, and can be
 * touched only while the device works: code of the host that follows an address of the device ends the program.
 * AddressSanitizer, which watches blocks of the heap, sees what kernels do wrong instead. */
static bool is_guarded(const memory *block) {
    return block->object.kind == MEMORY && fake.guarded;
}

#define PAGE 4096
#define PATTERN 0xa5 /* so that reading before writing shows */

static size_t guarded_size(const memory *block) {
    return (block->size + PAGE - 1) / PAGE * PAGE + PAGE;
}

/* Blocks end where their last page does, up to the alignment of 256, so that reading on from them touches the next. */
static char *pages_of(const memory *block) {
    return (char *)((uintptr_t)block->bytes / PAGE * PAGE);
}

static void make_guarded(memory *block) {
    size_t rounded = (block->size + 255) / 256 * 256, size = guarded_size(block);
    char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        abort();
    block->bytes = pages + size - PAGE - rounded;
    memset(block->bytes, PATTERN, block->size);
    mprotect(pages, size, PROT_NONE);
}

/* ---- pages that wait to be written ---- */

/* AddressSanitizer watches blocks of the heap alone. */
#if SB_ADDRESS_SANITIZER
#define LEAST_PAGES SIZE_MAX
#else
#define LEAST_PAGES (64 << 10)
#endif
#define MOST_PAGES (4 << 20)

/* A file that is full of the pattern; -1: there is none. */
static int pattern_file(void) {
    static int file = -2;
    if (file != -2)
        return file;
    file = memfd_create("pattern", MFD_CLOEXEC);
    char page[PAGE];
    memset(page, PATTERN, sizeof page);
    for (int i = 0; i < MOST_PAGES / PAGE && file >= 0; i++) {
        if (write(file, page, sizeof page) != sizeof page) {
            close(file);
            file = -1;
        }
    }
    return file;
}

/* Every queue has eight megabytes of pinned memory, of which a test writes a page: filling all of it took most of the time of
 * tests that make thousands. */
static bool show_pattern(memory *block) {
    if (block->size < LEAST_PAGES || block->size > MOST_PAGES || pattern_file() < 0)
        return false;
    /* With a page behind, so that no block begins where another ends. */
    char *pages = mmap(NULL, block->size + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, pattern_file(), 0);
    block->mapped = pages != MAP_FAILED;
    if (block->mapped)
        block->bytes = pages;
    return block->mapped;
}

void make_bytes(memory *block) {
    if (is_guarded(block)) {
        make_guarded(block);
        return;
    }
    if (show_pattern(block))
        return;
    block->bytes = aligned_alloc(256, (block->size + 255) / 256 * 256);
    if (block->bytes == NULL)
        abort();
    memset(block->bytes, PATTERN, block->size);
}

void free_bytes(memory *block) {
    if (is_guarded(block))
        munmap(pages_of(block), guarded_size(block));
    else if (block->mapped)
        munmap(block->bytes, block->size + PAGE);
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
