#include "reference.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support.h"

/* ---- the list ---- */

static int compare_items(const void *left, const void *right) {
    const struct reference_item *first = left, *second = right;
    return strcmp(first->name, second->name);
}

static bool copy_text(const char *text, char **copy) {
    *copy = text != NULL ? strdup(text) : NULL;
    return text == NULL || *copy != NULL;
}

static bool make_item(const char *name, const char *node, const char *op, sb_value value, struct reference_item *item) {
    *item = (struct reference_item){.value = value};
    return copy_text(name, &item->name) && copy_text(node, &item->node) && copy_text(op, &item->op);
}

static void free_item(struct reference_item *item) {
    free(item->name);
    free(item->node);
    free(item->op);
    sb_value_release(&item->value);
}

bool add_recorded(reference *reference, const char *name, const char *node, const char *op, sb_value value) {
    struct reference_item item;
    bool complete = make_item(name, node, op, value, &item);
    if (complete && reference->count == reference->capacity) {
        int capacity = reference->capacity > 0 ? 2 * reference->capacity : 64;
        struct reference_item *items = realloc(reference->items, (size_t)capacity * sizeof *reference->items);
        complete = items != NULL;
        if (complete) {
            reference->items = items;
            reference->capacity = capacity;
        }
    }
    if (complete)
        reference->items[reference->count++] = item;
    else
        free_item(&item);
    return complete;
}

static int add_item(reference *reference, const char *name, sb_value value) {
    return add_recorded(reference, name, NULL, NULL, value) ? EXIT_RIGHT : out_of_memory();
}

void sort_recorded(reference *reference) {
    if (reference->count > 0)
        qsort(reference->items, (size_t)reference->count, sizeof *reference->items, compare_items);
}

void free_reference(reference *reference) {
    for (int i = 0; i < reference->count; i++)
        free_item(&reference->items[i]);
    free(reference->items);
    *reference = (struct reference){0};
}

const sb_value *find_recorded(reference *reference, const char *name) {
    struct reference_item key = {.name = (char *)name}, *found = NULL;
    if (reference->count > 0)
        found = bsearch(&key, reference->items, (size_t)reference->count, sizeof key, compare_items);
    if (found == NULL)
        return NULL;
    found->used = true;
    return &found->value;
}

/* ---- files ---- */

static int read_archive(const char *path, reference *reference) {
    int count, code = EXIT_RIGHT;
    char **names;
    sb_tensor **tensors;
    sb_error error;
    if (sb_tensors_load(path, &count, &names, &tensors, &error) != SB_OK)
        return report(&error);
    for (int i = 0; i < count && code == EXIT_RIGHT; i++)
        code = add_item(reference, names[i], sb_value_of_tensor(sb_tensor_retain(tensors[i])));
    sb_tensors_free(count, names, tensors);
    return code;
}

static bool exists(const char *path) {
    struct stat found;
    return path != NULL && stat(path, &found) == 0 && S_ISREG(found.st_mode);
}

/* Whether a value's name stays in the folder when it is used as a path. */
static bool stays_inside(const char *name) {
    for (const char *part = name; part != NULL; part = strchr(part, '/')) {
        part += *part == '/';
        if (strcmp(part, "..") == 0 || strncmp(part, "../", 3) == 0)
            return false;
    }
    return name[0] != '\0';
}

/* Reads FOLDER/NAME.npy if there is such a file. */
static int read_named(const char *folder, const char *name, reference *reference) {
    size_t bytes = strlen(name) + sizeof ".npy";
    char *file = malloc(bytes);
    if (file == NULL)
        return out_of_memory();
    snprintf(file, bytes, "%s.npy", name);
    char *path = stays_inside(name) ? join_path(folder, file) : NULL;
    if (!exists(path)) {
        for (char *at = file; *at != '\0'; at++)
            *at = *at == '/' ? '_' : *at;
        free(path);
        path = join_path(folder, file);
    }
    free(file);
    int code = EXIT_RIGHT;
    sb_tensor *tensor = NULL;
    sb_error error;
    if (exists(path))
        code = sb_tensor_load(path, NULL, &tensor, &error) == SB_OK
                   ? add_item(reference, name, sb_value_of_tensor(tensor))
                   : report(&error);
    free(path);
    return code;
}

/* Reads FOLDER/STEM_INDEX.pb if there is such a file. */
static int read_standard(const char *folder, const char *stem, int index, const sb_value_description *description,
                         reference *reference) {
    char name[64];
    snprintf(name, sizeof name, "%s_%d.pb", stem, index);
    char *path = join_path(folder, name);
    int code = EXIT_RIGHT;
    sb_value value = {0};
    sb_error error;
    if (exists(path))
        code = sb_onnx_value_load(path, description, &value, &error) == SB_OK
                   ? add_item(reference, description->name, value)
                   : report(&error);
    free(path);
    return code;
}

static int read_folder(const char *folder, const sb_model *model, const sb_inspection *graph, reference *reference) {
    int code = EXIT_RIGHT;
    for (int i = 0; i < sb_model_input_count(model) && code == EXIT_RIGHT; i++)
        code = read_standard(folder, "input", i, sb_model_input(model, i), reference);
    for (int i = 0; i < sb_model_output_count(model) && code == EXIT_RIGHT; i++)
        code = read_standard(folder, "output", i, sb_model_output(model, i), reference);
    for (int i = 0; i < sb_inspection_value_count(graph) && code == EXIT_RIGHT; i++) {
        const sb_inspected_value *value = sb_inspection_value(graph, i);
        if (!value->initialiser)
            code = read_named(folder, value->name, reference);
    }
    return code;
}

int read_reference(const char *path, const sb_model *model, const sb_inspection *graph, reference *reference) {
    struct stat found;
    *reference = (struct reference){0};
    if (stat(path, &found) != 0) {
        fprintf(stderr, "samebit: cannot read reference %s: %s\n", path, strerror(errno));
        return EXIT_FAILED;
    }
    int code = S_ISDIR(found.st_mode) ? read_folder(path, model, graph, reference) : read_archive(path, reference);
    if (code == EXIT_RIGHT && reference->count == 0) {
        fprintf(stderr, "samebit: reference %s holds no value of the model\n", path);
        code = EXIT_FAILED;
    }
    sort_recorded(reference);
    return code;
}
