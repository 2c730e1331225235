/* Arithmetic of templates: Python's, with whole numbers of 64 bits, beyond which it fails. */
#include <math.h>

#include "base/allocation.h"
#include "template/value.h"

static sb_status fail_types(sb_jinja *jinja, char operator, sb_jinja_value left, sb_jinja_value right) {
    const char sign[3] = {operator== 'f' ? '/' :
                          operator== 'p' ? '*'
                                         :
                                         operator,
                          operator== 'f' ? '/' :
                          operator== 'p' ? '*'
                                         : '\0',
                          '\0'};
    return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "'%s' between values of types %s and %s", sign,
                         sb_jinja_kind_name(left), sb_jinja_kind_name(right));
}

/* ---- numbers ---- */

static double as_real(sb_jinja_value value) {
    return value.kind == SB_JINJA_REAL ? value.real : (double)sb_jinja_whole(value);
}

/* Whole numbers: towards minus infinity. */
static int64_t floor_quotient(int64_t left, int64_t right) {
    int64_t quotient = left / right;
    return quotient - (left % right != 0 && (left < 0) != (right < 0));
}

static sb_status raise_to_power(sb_jinja *jinja, int64_t base, int64_t exponent, sb_jinja_value *result) {
    int64_t power = 1;
    if (exponent < 0)
        return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED, "a negative exponent is not understood");
    for (int64_t i = 0; i < exponent && power != 0; i++) {
        if ((base == 1 || base == 0 || base == -1) && i == 2) /* the rest only changes the sign */
            i = exponent - 1 - (exponent - i - 1) % 2;
        if (__builtin_mul_overflow(power, base, &power))
            return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED, "a whole number beyond 64 bits");
    }
    *result = sb_jinja_integer(power);
    return SB_OK;
}

static sb_status combine_whole(sb_jinja *jinja, char operator, int64_t left, int64_t right, sb_jinja_value *result) {
    int64_t number = 0;
    bool beyond = false;
    if (right == 0 && (operator== 'f' || operator== '%' || operator== '/'))
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "a division by zero");
    switch (operator) {
    case '+':
        beyond = __builtin_add_overflow(left, right, &number);
        break;
    case '-':
        beyond = __builtin_sub_overflow(left, right, &number);
        break;
    case '*':
        beyond = __builtin_mul_overflow(left, right, &number);
        break;
    case 'f':
        beyond = left == INT64_MIN && right == -1;
        number = beyond ? 0 : floor_quotient(left, right);
        break;
    case '%':
        number = right == -1 ? 0 : left - floor_quotient(left, right) * right;
        break;
    case 'p':
        return raise_to_power(jinja, left, right, result);
    default:
        /* A quotient of whole numbers is rounded once, which this is while both are floats exactly. */
        if (left > (INT64_C(1) << 53) || left < -(INT64_C(1) << 53) || right > (INT64_C(1) << 53) ||
            right < -(INT64_C(1) << 53))
            return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED, "'/' of whole numbers beyond 2^53 is not understood");
        *result = sb_jinja_real((double)left / (double)right);
        return SB_OK;
    }
    if (beyond)
        return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED, "a whole number beyond 64 bits");
    *result = sb_jinja_integer(number);
    return SB_OK;
}

/* Python's float % and //: the remainder has the divisor's sign. */
static void divide_reals(double left, double right, double *quotient, double *remainder) {
    double rest = fmod(left, right), whole = (left - rest) / right;
    if (rest != 0 && (right < 0) != (rest < 0)) {
        rest += right;
        whole -= 1;
    }
    *remainder = rest != 0 ? rest : copysign(0, right);
    *quotient = whole != 0 ? floor(whole) + (whole - floor(whole) > 0.5) : copysign(0, left / right);
}

static sb_status combine_reals(sb_jinja *jinja, char operator, double left, double right, sb_jinja_value *result) {
    double quotient = 0, remainder = 0;
    if (right == 0 && (operator== 'f' || operator== '%' || operator== '/'))
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "a division by zero");
    if (operator== 'p')
        return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED, "'**' of floats is not understood");
    if (operator== 'f' || operator== '%')
        divide_reals(left, right, &quotient, &remainder);
    double number = operator== '+' ? left + right :
                    operator== '-' ? left - right
                    :
                    operator== '*' ? left * right
                    :
                    operator== '/' ? left / right
                    :
                    operator== 'f' ? quotient
                                   : remainder;
    *result = sb_jinja_real(number);
    return SB_OK;
}

/* ---- sequences ---- */

static sb_status add_texts(sb_jinja *jinja, sb_jinja_value left, sb_jinja_value right, sb_jinja_value *result) {
    bool escaped = left.detail != 0 || right.detail != 0; /* then the other one is escaped */
    if (escaped) {
        SB_TRY(sb_jinja_escape(jinja, left, &left));
        SB_TRY(sb_jinja_escape(jinja, right, &right));
    }
    size_t begin = sb_jinja_begin(jinja);
    SB_TRY(sb_jinja_write_value(jinja, left));
    SB_TRY(sb_jinja_write_value(jinja, right));
    SB_TRY(sb_jinja_take(jinja, begin, result));
    result->detail = escaped;
    return SB_OK;
}

static sb_status add_lists(sb_jinja *jinja, sb_jinja_value left, sb_jinja_value right, sb_jinja_value *result) {
    sb_jinja_list *list;
    size_t first = left.list->count, second = right.list->count;
    SB_TRY(sb_jinja_new_list(jinja, first + second, &list));
    SB_TRY(sb_jinja_spend(jinja, (first + second) / 16));
    if (first != 0)
        memcpy(list->items, left.list->items, first * sizeof *list->items);
    if (second != 0)
        memcpy(list->items + first, right.list->items, second * sizeof *list->items);
    *result = sb_jinja_of_list((sb_jinja_kind)left.kind, list);
    return SB_OK;
}

static sb_status repeat(sb_jinja *jinja, sb_jinja_value value, int64_t times, sb_jinja_value *result) {
    times = times < 0 ? 0 : times;
    if (value.kind == SB_JINJA_TEXT) {
        size_t begin = sb_jinja_begin(jinja);
        for (int64_t i = 0; i < times && value.text->bytes != 0; i++) {
            SB_TRY(sb_jinja_spend(jinja, 1));
            SB_TRY(sb_jinja_write_value(jinja, value));
        }
        SB_TRY(sb_jinja_take(jinja, begin, result));
        result->detail = value.detail;
        return SB_OK;
    }
    sb_jinja_list *list;
    size_t count = value.list->count, capacity = 0;
    SB_TRY(sb_jinja_new_list(jinja, 0, &list));
    for (int64_t i = 0; i < times && count != 0; i++) {
        SB_TRY(sb_jinja_spend(jinja, 1 + count / 16));
        for (size_t j = 0; j < count; j++)
            SB_TRY(sb_jinja_append(jinja, list, &capacity, value.list->items[j]));
    }
    *result = sb_jinja_of_list((sb_jinja_kind)value.kind, list);
    return SB_OK;
}

static bool is_sequence(sb_jinja_value value) {
    return value.kind == SB_JINJA_TEXT || value.kind == SB_JINJA_LIST || value.kind == SB_JINJA_TUPLE;
}

/* ---- the whole ---- */

sb_status sb_jinja_arithmetic(sb_jinja *jinja, char operator, sb_jinja_value left, sb_jinja_value right,
                              sb_jinja_value *result) {
    if (left.kind == SB_JINJA_TEXT && operator== '%')
        return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED, "'%%' that formats a text is not understood: write ~");
    SB_TRY(sb_jinja_check_defined(jinja, left));
    SB_TRY(sb_jinja_check_defined(jinja, right));
    if (sb_jinja_is_whole(left) && sb_jinja_is_whole(right))
        return combine_whole(jinja, operator, sb_jinja_whole(left), sb_jinja_whole(right), result);
    if (sb_jinja_is_number(left) && sb_jinja_is_number(right))
        return combine_reals(jinja, operator, as_real(left), as_real(right), result);
    if (operator== '+' && left.kind == right.kind && is_sequence(left))
        return left.kind == SB_JINJA_TEXT ? add_texts(jinja, left, right, result)
                                          : add_lists(jinja, left, right, result);
    if (operator== '*' && is_sequence(left) && sb_jinja_is_whole(right))
        return repeat(jinja, left, sb_jinja_whole(right), result);
    if (operator== '*' && is_sequence(right) && sb_jinja_is_whole(left))
        return repeat(jinja, right, sb_jinja_whole(left), result);
    if (left.kind == SB_JINJA_VIEW ||
        right.kind == SB_JINJA_VIEW) /* (Views of keys and items are sets, for - at least.) */
        return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED, "an operator on a view of a dict is not understood");
    return fail_types(jinja, operator, left, right);
}

sb_status sb_jinja_negate(sb_jinja *jinja, sb_jinja_value value, bool negative, sb_jinja_value *result) {
    SB_TRY(sb_jinja_check_defined(jinja, value));
    if (!sb_jinja_is_number(value))
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "a sign before a value of type %s",
                             sb_jinja_kind_name(value));
    if (value.kind == SB_JINJA_REAL)
        *result = sb_jinja_real(negative ? -value.real : value.real);
    else if (negative)
        return combine_whole(jinja, '-', 0, sb_jinja_whole(value), result);
    else
        *result = sb_jinja_integer(sb_jinja_whole(value));
    return SB_OK;
}
