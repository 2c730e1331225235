/* How AVX-512 picks the elements of 32 lanes: by permutations of rows of packed panels, of A's rows and of B's columns. */
typedef struct group_source {
    const uint16_t *rows, *columns;
} group_source;

static inline void enter_group(group_source *source, const sb_chain16_near_rows *a, const uint16_t *panel,
                               int64_t group) {
    source->rows = a->panel + group * GROUP * PANEL;
    source->columns = panel + group * GROUP * PANEL;
}

static inline integers pick(const uint16_t *row, const uint16_t *places) {
    return _mm512_permutex2var_epi16(i_load(row), i_load(places), i_load(row + PANEL / 2));
}

static inline void choose_k(const group_source *source, const uint16_t *rows, const uint16_t *columns, int k,
                            chosen *to) {
    to->a[k] = pick(source->rows + k * PANEL, rows);
    to->b[k] = pick(source->columns + k * PANEL, columns);
    take_fields(to->a[k], to->b[k], to);
}
