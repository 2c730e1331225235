/* What tests over the fake driver share. Include after cmocka.h. */
#ifndef WITH_FAKE_H
#define WITH_FAKE_H

#include <dlfcn.h>
#include <string.h>

#include "base/allocation.h"
#include "cuda/driver/device.h"
#include "fake_cuda.h"

/* The fake's control, with everything forgotten. */
static inline const fake_cuda_control *fresh_fake(void) {
    void *library = dlopen(FAKE_CUDA, RTLD_NOW);
    assert_non_null(library);
    fake_cuda_get *get;
    void *symbol = dlsym(library, "fake_cuda_get_control");
    assert_non_null(symbol);
    memcpy(&get, &symbol, sizeof get);
    get()->reset();
    return get();
}

/* A test's own images: text that the fake takes for a module. */
#define IMAGE(name, architecture, kind, compute, text)                                                                 \
    { name, architecture, kind, compute, text, text + sizeof text - 1, false }

static const char image_80[] = "FAKE sm_80 first second", image_90[] = "FAKE sm_90a first second",
                  image_ptx[] = "FAKE compute_90 first second", image_bad[] = "BAD";
static const sb_cuda_image test_image_table[] = {
    IMAGE("test", "sm_80", SB_CUDA_CUBIN, 80, image_80),
    IMAGE("test", "sm_90a", SB_CUDA_CUBIN_EXACT, 90, image_90),
    IMAGE("test", "compute_90", SB_CUDA_PTX, 90, image_ptx),
    IMAGE("bad", "sm_80", SB_CUDA_CUBIN, 80, image_bad),
};
static const sb_cuda_images test_images = {13000, 4, test_image_table};

/* Whether the build has embedded kernels for every kind of device, as it does unless
 * SAMEBIT_CUDA_ARCHITECTURES says less. */
static inline bool has_all_architectures(void) {
    static const int computes[] = {80, 90, 120};
    static const char *const names[] = {"sm_80", "sm_90a", "compute_90"};
    char why[SB_CUDA_WHY_BYTES];
    for (int i = 0; i < 3; i++) {
        const sb_cuda_image *image = sb_cuda_choose_image(&sb_cuda_embedded_images, NULL, computes[i], 13000, why);
        if (image == NULL || strcmp(image->architecture, names[i]) != 0)
            return false;
    }
    return true;
}

static inline const sb_cuda_driver *open_fake(void) {
    const sb_cuda_driver *driver = NULL;
    sb_error error = {SB_OK, ""};
    if (sb_cuda_driver_open(FAKE_CUDA, &driver, NULL, NULL, &error) != SB_OK)
        fail_msg("%s", error.message);
    return driver;
}

/* Nothing lives in the driver, and nothing was misused. */
static inline void check_nothing_lives(const fake_cuda_control *fake) {
    fake_live live = fake->live();
    assert_int_equal(live.contexts, 0);
    assert_int_equal(live.memory, 0);
    assert_int_equal(live.host_memory, 0);
    assert_int_equal(live.streams, 0);
    assert_int_equal(live.events, 0);
    assert_int_equal(live.modules, 0);
    assert_int_equal(live.graphs, 0);
    assert_int_equal(live.executables, 0);
    assert_string_equal(fake->complaint(), "");
}

/* Whether the call log has the text. */
static inline bool logged(const fake_cuda_control *fake, const char *text) {
    return strstr(fake->log(), text) != NULL;
}

#define assert_says(error, text)                                                                                       \
    do {                                                                                                               \
        if (strstr((error).message, (text)) == NULL)                                                                   \
            fail_msg("\"%s\" does not say \"%s\"", (error).message, (text));                                           \
    } while (0)

/* Runs `attempt`, which does its work, gives everything back and returns its status, with every
 * call of the driver failing in turn, once and (with a sticky result) for good. A failure has to be
 * reported unless it happened while giving back, and nothing may be left. `fresh` sets the fake up
 * anew each time. */
static inline void check_failing_calls(const fake_cuda_control *fake, sb_status (*attempt)(void *context),
                                       void *context, int result) {
    int reported = 0;
    for (int skip = 0;; skip++) {
        int64_t blocks = sb_allocation_count().live_blocks;
        fake->plan_failure(NULL, skip, result);
        sb_status status = attempt(context);
        bool happened = fake->failure_happened();
        fake->plan_failure(NULL, -1, 0);
        assert_int_equal(sb_allocation_count().live_blocks, blocks);
        fake_live live = fake->live();
        if (live.contexts + live.memory + live.host_memory + live.streams + live.events + live.modules + live.graphs +
                live.executables !=
            0)
            fail_msg("call %d failing leaves something: %s", skip, fake->log());
        assert_string_equal(fake->complaint(), "");
        if (!happened) {
            assert_int_equal(status, SB_OK);
            assert_true(reported > 0);
            return;
        }
        reported += status != SB_OK;
        fake->reset();
        assert_true(skip < 100000);
    }
}

#endif
