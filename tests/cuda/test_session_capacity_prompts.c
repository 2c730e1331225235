/* Prompts of any length up to the capacity, on a device: positions that a run's extents tell are made there, and no prompt has
 * a plan of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "session_support.h"
#include "state/prompts.h"
#include "thorough.h"

/* The second kind in all graph modes, each of the others in one for each model; unless tests are thorough, for one of the models. */
static void check_decoder(int index) {
    fake_with_kernels();
    sb_device *device = open_device();
    sb_model *model = load_decoder(decoder_files[index]);
    prompt_script script = write_prompts(model);
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        for (int kind = 0; kind < PROMPT_KINDS; kind++) {
            bool is_left = !tests_are_thorough() && (kind + index) % 2 != 0;
            if (kind == 1 || (!is_left && (kind + index) % 3 == (int)mode % 3))
                run_prompts(model, &script, device, mode, &prompt_kinds[kind]);
        }
    }
    drop_prompts(&script);
    sb_model_release(model);
    sb_device_release(device);
}

static void test_the_exporter(void **context) {
    check_decoder(0);
}

static void test_the_older_exporter(void **context) {
    check_decoder(1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_exporter),
        cmocka_unit_test(test_the_older_exporter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
