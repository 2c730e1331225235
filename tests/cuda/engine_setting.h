/* An engine on a device beside one on the CPU. Include after cmocka.h. */
#ifndef ENGINE_SETTING_H
#define ENGINE_SETTING_H

#include <samebit/gemm.h>

#include "cuda/driver/device_open.h"
#include "cuda/queue/staging.h"
#include "cuda/queue/task.h"
#include "driver_choice.h"
#include "host_kernels.h"
#include "support/random.h"

typedef struct setting {
    const fake_cuda_control *fake;
    struct sb_device device; /* without a lane: engines do not need it */
    sb_cuda_queue queue;
    sb_cuda_staging *staging;
    sb_engine *gpu, *cpu;
    random_source random;
} setting;

/* On the fake driver, a device of so many multiprocessors; 0 for what it has. */
static inline setting set_up_with(int multiprocessors) {
    setting setting = {.random = {42}};
    const sb_cuda_driver *driver = NULL;
    sb_engine_options options = SB_ENGINE_OPTIONS_DEFAULT;
    if (is_fake()) {
        setting.fake = fresh_fake();
        define_host_kernels(setting.fake);
        const fake_device small = {"Fake H200", 90, multiprocessors, (size_t)1 << 30};
        if (multiprocessors > 0)
            setting.fake->set_devices(1, &small);
    }
    MUST(sb_cuda_driver_open(library, &driver, NULL, NULL, error));
    MUST(open_device_handle(driver, 0, is_fake() ? &host_images : NULL, &setting.device, error));
    MUST(sb_cuda_stream_create(setting.device.handle, &setting.queue.stream, error));
    MUST(sb_cuda_staging_create(setting.device.handle, 1 << 20, &setting.staging, error));
    options.threads = 1;
    MUST(sb_engine_create(&options, &setting.cpu, error));
    options.device = &setting.device;
    MUST(sb_engine_create(&options, &setting.gpu, error));
    return setting;
}

static inline setting set_up(void) {
    return set_up_with(0);
}

static inline void tear_down(setting *setting) {
    sb_engine_destroy(setting->gpu);
    sb_engine_destroy(setting->cpu);
    sb_cuda_staging_destroy(setting->staging);
    sb_cuda_stream_destroy(setting->queue.stream);
    sb_cuda_device_release(setting->device.handle);
    if (setting->fake != NULL)
        check_nothing_lives(setting->fake);
}

#endif
