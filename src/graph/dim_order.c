/* The order of everything in a dimension expression: by structure and name.
 * Recursion is bounded by SB_DIM_MOST_DEPTH. */
#include <string.h>

#include "graph/dim_internal.h"

static int compare_numbers(int64_t left, int64_t right) {
    return (left > right) - (left < right);
}

int sb_atom_compare(const sb_atom *left, const sb_atom *right) {
    if (left == right)
        return 0;
    if (left->kind != right->kind)
        return compare_numbers(left->kind, right->kind);
    if (left->kind == SB_ATOM_SYMBOL)
        return strcmp(left->name, right->name);
    if (left->operand_count != right->operand_count)
        return compare_numbers(left->operand_count, right->operand_count);
    for (int i = 0; i < left->operand_count; i++) {
        int order = sb_dim_compare(left->operands[i], right->operands[i]);
        if (order != 0)
            return order;
    }
    return 0;
}

int sb_monomial_compare(const sb_monomial *left, const sb_monomial *right) {
    if (left == right)
        return 0;
    if (left->degree != right->degree)
        return compare_numbers(right->degree, left->degree);
    for (int i = 0; i < left->degree; i++) {
        int order = sb_atom_compare(left->factors[i], right->factors[i]);
        if (order != 0)
            return order;
    }
    return 0;
}

int sb_dim_compare(sb_dim left, sb_dim right) {
    if (left == right)
        return 0;
    for (int i = 0; i < left->term_count && i < right->term_count; i++) {
        int order = sb_monomial_compare(left->terms[i].monomial, right->terms[i].monomial);
        if (order == 0)
            order = compare_numbers(left->terms[i].coefficient, right->terms[i].coefficient);
        if (order != 0)
            return order;
    }
    return compare_numbers(right->term_count, left->term_count);
}

bool sb_dim_equal(sb_dim left, sb_dim right) {
    if (left == right)
        return true;
    if (left == NULL || right == NULL || (left->scope == right->scope && left->scope != NULL) ||
        left->hash != right->hash)
        return false;
    return sb_dim_compare(left, right) == 0;
}
