/* Attention of one query and head, for one type of softmax: SB_ATTENTION_REAL is float or double, SB_ATTENTION_NAME(name)
 * adds a suffix, SB_ATTENTION_OTHER(name) one of the functions of src/numerics and ops/attention_values.h. */

/* A row's sums over the splits so far. */
typedef struct SB_ATTENTION_NAME(row_sums) {
    bool any;
    int32_t maximum;
    SB_ATTENTION_REAL weights;
} SB_ATTENTION_NAME(row_sums);

/* Scores of `count` keys from `start`, as the softmax takes them, and which of them are seen. */
static void SB_ATTENTION_NAME(load_scores)(const row *r, int64_t start, int64_t count, SB_ATTENTION_REAL *s,
                                           bool *seen) {
    const sb_attention_work *work = r->work;
    double bias[SB_ATTENTION_BLOCK];
    scores_buffer z;
    look(r, start, count, seen, bias);
    if (work->given.data != NULL) {
        const char *from = element(&work->given, r, start);
        for (int64_t j = 0; j < count; j++)
            s[j] = (SB_ATTENTION_REAL)sb_number_load(work->given.dtype, from, j * work->given.column);
        return;
    }
    contract_keys(r, start, count, &z);
    if (!r->direct)
        finish_scores(work, SB_ATTENTION_BIASED, count, &z, bias);
    for (int64_t j = 0; j < count; j++)
        s[j] = work->dtype == SB_F64 ? (SB_ATTENTION_REAL)z.f64[j] : (SB_ATTENTION_REAL)z.f32[j];
}

/* Scores of a block, and which of them take part. False when one that is seen is NaN or too large; *largest is the largest exponent,
 * -SB_SPLIT_EXPONENT_LIMIT if none takes part. */
static bool SB_ATTENTION_NAME(find_block)(const row *r, int64_t start, int64_t count, SB_ATTENTION_REAL *s, bool *seen,
                                          int32_t *largest) {
    SB_ATTENTION_NAME(load_scores)(r, start, count, s, seen);
    *largest = -SB_SPLIT_EXPONENT_LIMIT;
    for (int64_t j = 0; j < count; j++) {
        if (!seen[j])
            continue;
        SB_ATTENTION_REAL held = SB_ATTENTION_OTHER(sb_split_hold)(s[j], r->SB_ATTENTION_NAME(split));
        SB_ATTENTION_REAL shifted = SB_ATTENTION_OTHER(sb_split_shifted)(held, r->SB_ATTENTION_NAME(split));
        int32_t n = SB_ATTENTION_OTHER(sb_split_exponent)(shifted);
        if (held != held || n >= SB_SPLIT_EXPONENT_LIMIT)
            return false;
        seen[j] = n > -SB_SPLIT_EXPONENT_LIMIT;
        *largest = n > *largest ? n : *largest;
    }
    return true;
}

/* Weights of a split and the sum of them. False when the row is NaN. */
static bool SB_ATTENTION_NAME(weigh_split)(const row *r, int64_t start, int64_t end, split_weights *split,
                                           SB_ATTENTION_REAL *sum) {
    SB_ATTENTION_REAL lanes[SB_SPLIT_LANES] = {0}, s[SB_ATTENTION_BLOCK];
    int32_t largest;
    bool seen[SB_ATTENTION_BLOCK];
    *split = (split_weights){.start = start, .end = end};
    for (int64_t block = start; block < end; block += SB_ATTENTION_BLOCK) {
        int64_t count = end - block < SB_ATTENTION_BLOCK ? end - block : SB_ATTENTION_BLOCK;
        block_weights *at = &split->blocks[(block - start) / SB_ATTENTION_BLOCK];
        if (block + count <= r->at.reach.first || block >= r->at.reach.last)
            continue;
        if (!SB_ATTENTION_NAME(find_block)(r, block, count, s, seen, &largest))
            return false;
        if (largest == -SB_SPLIT_EXPONENT_LIMIT)
            continue;
        if (split->any && largest > split->maximum) {
            at->lowered = split->maximum - largest;
            for (int lane = 0; lane < SB_SPLIT_LANES; lane++)
                lanes[lane] = lanes[lane] * SB_ATTENTION_OTHER(sb_split_factor)(at->lowered, 0);
        }
        split->maximum = split->any && split->maximum > largest ? split->maximum : largest;
        split->any = at->any = true;
        for (int64_t j = 0; j < count; j++) {
            SB_ATTENTION_REAL weight = 0;
            if (seen[j])
                weight = SB_ATTENTION_OTHER(sb_attention_weight)(r->work->dtype, s[j], r->SB_ATTENTION_NAME(split),
                                                                 split->maximum);
            weight = (SB_ATTENTION_REAL)store_weight(r->work->dtype, &at->weights, j, (double)weight);
            lanes[sb_split_lane(block + j)] += weight;
        }
        at->count = count;
    }
    *sum = SB_ATTENTION_OTHER(sb_split_fold)(lanes[0], lanes[1], lanes[2], lanes[3]);
    return true;
}

static void SB_ATTENTION_NAME(fold_sum)(SB_ATTENTION_NAME(row_sums) * sums, int32_t maximum, SB_ATTENTION_REAL sum) {
    if (!sums->any) {
        *sums = (SB_ATTENTION_NAME(row_sums)){true, maximum, sum};
    } else if (maximum <= sums->maximum) {
        sums->weights = sums->weights + sum * SB_ATTENTION_OTHER(sb_split_factor)(maximum, sums->maximum);
    } else {
        sums->weights = sums->weights * SB_ATTENTION_OTHER(sb_split_factor)(sums->maximum, maximum) + sum;
        sums->maximum = maximum;
    }
}

/* All splits of a row; `total` is the sum of values, in the type of the chains. False when the row is NaN. Without
 * `total`, the sum of weights alone. */
static bool SB_ATTENTION_NAME(sum_row)(const row *r, void *total, SB_ATTENTION_NAME(row_sums) * sums) {
    *sums = (SB_ATTENTION_NAME(row_sums)){0};
    split_weights split;
    SB_ATTENTION_REAL sum;
    for (int64_t start = r->at.reach.first - r->at.reach.first % SB_ATTENTION_SPLIT; start < r->at.reach.last;
         start += SB_ATTENTION_SPLIT) {
        int64_t left = r->at.reach.last - start, end = start + (left < SB_ATTENTION_SPLIT ? left : SB_ATTENTION_SPLIT);
        if (!SB_ATTENTION_NAME(weigh_split)(r, start, end, &split, &sum))
            return false;
        if (!split.any)
            continue;
        if (total != NULL)
            add_values(r, &split, sums->any, sums->maximum, total);
        SB_ATTENTION_NAME(fold_sum)(sums, split.maximum, sum);
    }
    return true;
}

static void SB_ATTENTION_NAME(store_probabilities)(const row *r, bool known, const SB_ATTENTION_NAME(row_sums) * sums) {
    const sb_attention_array *to = &r->work->scores;
    SB_ATTENTION_REAL s[SB_ATTENTION_BLOCK], share = SB_ATTENTION_OTHER(sb_div)(1, sums->weights);
    int32_t largest;
    bool seen[SB_ATTENTION_BLOCK];
    for (int64_t block = 0; block < r->work->keys; block += SB_ATTENTION_BLOCK) {
        int64_t left = r->work->keys - block, count = left < SB_ATTENTION_BLOCK ? left : SB_ATTENTION_BLOCK;
        if (known)
            SB_ATTENTION_NAME(find_block)(r, block, count, s, seen, &largest);
        char *out = element(to, r, block);
        for (int64_t j = 0; j < count; j++) {
            SB_ATTENTION_REAL p = known ? 0 : SB_ATTENTION_OTHER(sb_nan)();
            if (known && seen[j])
                p = SB_ATTENTION_OTHER(sb_attention_weight)(r->work->dtype, s[j], r->SB_ATTENTION_NAME(split),
                                                            sums->maximum) *
                    share;
            sb_number_store(to->dtype, out, j * to->column, (double)p);
        }
    }
}

static void SB_ATTENTION_NAME(compute_row)(const row *r, void *total) {
    const sb_attention_work *work = r->work;
    SB_ATTENTION_NAME(row_sums) sums;
    bool known = SB_ATTENTION_NAME(sum_row)(r, work->y.data != NULL ? total : NULL, &sums);
    if (work->scores.data != NULL && work->stage == SB_ATTENTION_PROBABILITY)
        SB_ATTENTION_NAME(store_probabilities)(r, known, &sums);
    if (work->y.data == NULL)
        return;
    SB_ATTENTION_REAL share = SB_ATTENTION_OTHER(sb_div)(1, sums.weights);
    char *out = element(&work->y, r, 0);
    for (int64_t c = 0; c < work->value_width; c++) {
        SB_ATTENTION_REAL value = known ? 0 : SB_ATTENTION_OTHER(sb_nan)();
        if (known && sums.any) {
            value = work->dtype == SB_F64 ? (SB_ATTENTION_REAL)((const double *)total)[c]
                                          : (SB_ATTENTION_REAL)((const float *)total)[c];
            value = value * share;
        }
        sb_number_store(work->dtype, out, c * work->y.column, (double)value);
    }
}
