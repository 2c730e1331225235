/* Registries: an entry for every operator, and complaints where there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs the headers above first. */
#include <cmocka.h>

#include <string.h>

#include "rules/axes.h"
#include "rules/cost.h"
#include "support/must.h"

static void check_complete(void **state) {
    MUST(sb_registry_check(sb_axes_registry(), error));
    MUST(sb_registry_check(sb_cost_registry(), error));
}

static void check_one(void *context, const sb_op *op) {
    const sb_axes_entry *axes = sb_axes_find(op);
    const sb_cost_entry *cost = sb_cost_find(op);
    assert_non_null(axes);
    assert_string_equal(axes->op.name, op->name);
    assert_non_null(axes->rule);
    assert_non_null(cost);
    assert_string_equal(cost->op.name, op->name);
    assert_non_null(cost->flops);
    assert_non_null(cost->bytes);
    ++*(int *)context;
}

static void check_lookup(void **state) {
    int count = 0;
    sb_op_visit(check_one, &count);
    assert_int_equal(sb_axes_registry()->count, count);
    assert_int_equal(sb_cost_registry()->count, count);
    const sb_op stranger = {.name = "Add", .domain = ""};
    assert_null(sb_axes_find(&stranger));
}

/* A registry of the entries `keys`, which one without a name ends. */
static void expect_complaint(const sb_rule_key *keys, const char *words) {
    static sb_registry registry;
    const void *const tables[] = {keys, NULL};
    sb_error error = {SB_OK, ""};
    registry = (sb_registry){.name = "test", .tables = tables, .entry_bytes = sizeof keys[0]};
    sb_registry_index(&registry);
    assert_int_equal(sb_registry_check(&registry, &error), SB_ERROR_INTERNAL);
    if (strstr(error.message, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error.message, words);
}

static void check_complaints(void **state) {
    expect_complaint((const sb_rule_key[]){{"Add", NULL}, {NULL, NULL}}, "the registry test has no entry for ");
    expect_complaint((const sb_rule_key[]){{"Add", NULL}, {"Add", ""}, {NULL, NULL}}, "two entries for Add");
    expect_complaint((const sb_rule_key[]){{"Addition", NULL}, {NULL, NULL}}, "Addition, which is no operator");
    expect_complaint((const sb_rule_key[]){{"Add", "samebit"}, {NULL, NULL}}, "Add, which is no operator");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_complete),
        cmocka_unit_test(check_lookup),
        cmocka_unit_test(check_complaints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
