/* Prompts of any length up to the capacity, on the host: none has a plan of its own, and each has the bits of exact
 * extents. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "prompts.h"

static void test_prompts(void **context) {
    for (int i = 0; i < 2; i++) {
        sb_model *model = load_decoder(decoder_files[i]);
        prompt_script script = write_prompts(model);
        for (int kind = 0; kind < PROMPT_KINDS; kind++)
            run_prompts(model, &script, NULL, SB_GRAPHS_OFF, &prompt_kinds[kind]);
        drop_prompts(&script);
        sb_model_release(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prompts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
