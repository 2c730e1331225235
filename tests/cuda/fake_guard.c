/* The memory of blocks: the device's, which the host cannot touch where a program asks for that, and pages that are there once
 * somebody writes them. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sanitizer.h"
#if SB_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif
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

#define LEAST_PAGES (64 << 10)
#define MOST_PAGES (4 << 20)

/* A file that is full of the pattern; -1: there is none. */
static int pattern_file(void) {
    static int file = -2;
    if (file != -2)
        return file;
    file = memfd_create("pattern", MFD_CLOEXEC);
    char page[PAGE];
    memset(page, PATTERN, sizeof page);
    for (int i = 0; i <= MOST_PAGES / PAGE && file >= 0; i++) {
        if (write(file, page, sizeof page) != sizeof page) {
            close(file);
            file = -1;
        }
    }
    return file;
}

/* Of a block with a page ahead and one behind, so that no block begins where another ends. */
static size_t mapped_size(const memory *block) {
    return (block->size + PAGE - 1) / PAGE * PAGE + 2 * PAGE;
}

/* AddressSanitizer watches blocks of the heap by itself, of these what it is told. */
static void watch_margins(const memory *block) {
#if SB_ADDRESS_SANITIZER
    ASAN_POISON_MEMORY_REGION(block->bytes - PAGE, PAGE);
    ASAN_POISON_MEMORY_REGION(block->bytes + block->size, mapped_size(block) - PAGE - block->size);
#endif
}

/* Every queue has eight megabytes of pinned memory, of which a test writes a page: filling all of it took most of the time of
 * tests that make thousands. */
static bool show_pattern(memory *block) {
    if (block->size < LEAST_PAGES || block->size > MOST_PAGES || pattern_file() < 0)
        return false;
    char *pages = mmap(NULL, mapped_size(block), PROT_READ | PROT_WRITE, MAP_PRIVATE, pattern_file(), 0);
    block->mapped = pages != MAP_FAILED;
    if (!block->mapped)
        return false;
    block->bytes = pages + PAGE;
    watch_margins(block);
    return true;
}

/* Under AddressSanitizer nothing comes to lie there again: whoever still uses the block ends the program, as on the heap. */
static void hide_pattern(const memory *block) {
    char *pages = block->bytes - PAGE;
    if (!SB_ADDRESS_SANITIZER)
        munmap(pages, mapped_size(block));
    else if (mmap(pages, mapped_size(block), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        abort();
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
        hide_pattern(block);
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
