/* What the scripts need and a shell does not have: small models, and looking into JSON and markup.
 *
 *   cli_tool model chain|names|wide|endless|large|sum|product N FILE   writes an ONNX model
 *   cli_tool array FIRST STEP ROWS FILE      writes f32[ROWS,4] as .npy: FIRST, FIRST+STEP, …
 *   cli_tool json FILE PATH=VALUE…           PATH is like nodes.0.op, or nodes# for a count; VALUE as it is printed
 *   cli_tool markup FILE                     XML or HTML whose tags are balanced and whose text is clean */
#include <ctype.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- models: protobuf by hand, field by field ---- */

typedef struct message {
    size_t size, capacity;
    unsigned char *bytes;
} message;

static void put_byte(message *message, unsigned char byte) {
    if (message->size == message->capacity) {
        message->capacity = message->capacity > 0 ? 2 * message->capacity : 256;
        message->bytes = realloc(message->bytes, message->capacity);
        if (message->bytes == NULL)
            exit(3);
    }
    message->bytes[message->size++] = byte;
}

static void put_varint(message *message, uint64_t value) {
    for (; value >= 0x80; value >>= 7)
        put_byte(message, (unsigned char)(value | 0x80));
    put_byte(message, (unsigned char)value);
}

static void put_number(message *message, unsigned field, uint64_t value) {
    put_varint(message, (uint64_t)field << 3);
    put_varint(message, value);
}

static void put_bytes(message *message, unsigned field, const void *bytes, size_t size) {
    put_varint(message, (uint64_t)field << 3 | 2);
    put_varint(message, size);
    for (size_t i = 0; i < size; i++)
        put_byte(message, ((const unsigned char *)bytes)[i]);
}

static void put_text(message *message, unsigned field, const char *text) {
    put_bytes(message, field, text, strlen(text));
}

/* Puts `part` into `message` and empties it. */
static void put_part(message *message, unsigned field, struct message *part) {
    put_bytes(message, field, part->bytes, part->size);
    free(part->bytes);
    *part = (struct message){0};
}

/* A ValueInfoProto: f32[batch,4]. */
static void put_value(message *graph, unsigned field, const char *name) {
    message dimension = {0}, shape = {0}, tensor = {0}, type = {0}, value = {0};
    put_text(&dimension, 2, "batch");
    put_part(&shape, 1, &dimension);
    put_number(&dimension, 1, 4);
    put_part(&shape, 1, &dimension);
    put_number(&tensor, 1, 1);
    put_part(&tensor, 2, &shape);
    put_part(&type, 1, &tensor);
    put_text(&value, 1, name);
    put_part(&value, 2, &type);
    put_part(graph, field, &value);
}

static void put_node(message *graph, const char *op, const char *name, const char *first, const char *second,
                     const char *output) {
    message node = {0};
    put_text(&node, 1, first);
    if (second != NULL)
        put_text(&node, 1, second);
    put_text(&node, 2, output);
    put_text(&node, 3, name);
    put_text(&node, 4, op);
    put_part(graph, 1, &node);
}

/* `count` nodes one behind the other, every fifth adding what was there four nodes before. */
static void put_chain(message *graph, int count) {
    char name[64], before[64], earlier[64], output[64];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "/layer/node_%d", i);
        snprintf(before, sizeof before, i > 0 ? "v%d" : "x", i - 1);
        snprintf(earlier, sizeof earlier, "v%d", i - 4);
        snprintf(output, sizeof output, i + 1 < count ? "v%d" : "y", i);
        bool adds = i % 5 == 4;
        put_node(graph, adds ? "Add" : i % 2 == 0 ? "Relu" : "Neg", name, before, adds ? earlier : NULL, output);
    }
}

/* `count` nodes side by side, then a chain that gathers them. */
static void put_wide(message *graph, int count) {
    char name[64], sum[64], output[64];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "branch_%d", i);
        put_node(graph, "Relu", name, "x", NULL, name);
    }
    for (int i = 1; i < count; i++) {
        snprintf(name, sizeof name, "branch_%d", i);
        snprintf(sum, sizeof sum, i > 1 ? "sum_%d" : "branch_0", i - 1);
        snprintf(output, sizeof output, i + 1 < count ? "sum_%d" : "y", i);
        put_node(graph, "Add", output, sum, name, output);
    }
}

/* A ValueInfoProto of a scalar of ONNX's data type `type`. */
static void put_scalar(message *graph, unsigned field, const char *name, unsigned type_number) {
    message shape = {0}, tensor = {0}, type = {0}, value = {0};
    put_number(&tensor, 1, type_number);
    put_part(&tensor, 2, &shape);
    put_part(&type, 1, &tensor);
    put_text(&value, 1, name);
    put_part(&value, 2, &type);
    put_part(graph, field, &value);
}

/* A loop that nothing ends: y is x, some day. */
static void put_endless(message *graph) {
    message node = {0}, attribute = {0}, body = {0};
    put_scalar(&body, 11, "i", 7);
    put_scalar(&body, 11, "go_on", 9);
    put_value(&body, 11, "state");
    put_text(&body, 2, "body");
    put_node(&body, "Neg", "turn", "state", NULL, "next");
    put_scalar(&body, 12, "go_on", 9);
    put_value(&body, 12, "next");
    put_text(&node, 1, "");
    put_text(&node, 1, "");
    put_text(&node, 1, "x");
    put_text(&node, 2, "y");
    put_text(&node, 3, "forever");
    put_text(&node, 4, "Loop");
    put_text(&attribute, 1, "body");
    put_number(&attribute, 20, 5);
    put_part(&attribute, 6, &body);
    put_part(&node, 5, &attribute);
    put_part(graph, 1, &node);
}

/* x in 2^`power` copies, negated. */
static void put_large(message *graph, int power) {
    message node = {0}, attribute = {0}, tensor = {0};
    put_number(&tensor, 1, 2);
    put_number(&tensor, 2, 7);
    put_number(&tensor, 7, UINT64_C(1) << power);
    put_number(&tensor, 7, 1);
    put_text(&attribute, 1, "value");
    put_number(&attribute, 20, 4);
    put_part(&attribute, 5, &tensor);
    put_text(&node, 2, "times");
    put_text(&node, 4, "Constant");
    put_part(&node, 5, &attribute);
    put_part(graph, 1, &node);
    put_node(graph, "Tile", "copies", "x", "times", "many");
    put_node(graph, "Neg", "minus", "many", NULL, "y");
}

/* A recurrence: hN is h + x and y is -hN. */
static void put_sum(message *graph) {
    put_node(graph, "Add", "sum", "h", "x", "hN");
    put_node(graph, "Neg", "minus", "hN", NULL, "y");
    put_value(graph, 11, "h");
    put_value(graph, 12, "hN");
}

static void put_cast(message *graph, const char *name, const char *input, unsigned to, const char *output) {
    message node = {0}, attribute = {0};
    put_text(&node, 1, input);
    put_text(&node, 2, output);
    put_text(&node, 3, name);
    put_text(&node, 4, "Cast");
    put_text(&attribute, 1, "to");
    put_number(&attribute, 3, to);
    put_number(&attribute, 20, 2);
    put_part(&node, 5, &attribute);
    put_part(graph, 1, &node);
}

/* x times itself in f16. */
static void put_product(message *graph) {
    put_cast(graph, "narrow", "x", 10, "half");
    put_node(graph, "MatMul", "square", "half", "half", "squared");
    put_cast(graph, "wide", "squared", 1, "y");
}

/* Names that would break a terminal, a page or a JSON string. */
static void put_names(message *graph) {
    put_node(graph, "Relu", "\x1b[31m<script>alert(\"&\")</script>", "x", NULL, "</title>\n'\"\\ \t&amp;");
    put_node(graph, "Relu", "../../etc/passwd", "</title>\n'\"\\ \t&amp;", NULL, "y");
}

static int write_model(const char *kind, int count, const char *path) {
    message graph = {0}, opset = {0}, model = {0};
    if (strcmp(kind, "chain") == 0)
        put_chain(&graph, count);
    else if (strcmp(kind, "wide") == 0)
        put_wide(&graph, count);
    else if (strcmp(kind, "endless") == 0)
        put_endless(&graph);
    else if (strcmp(kind, "large") == 0)
        put_large(&graph, count);
    else if (strcmp(kind, "sum") == 0)
        put_sum(&graph);
    else if (strcmp(kind, "product") == 0)
        put_product(&graph);
    else
        put_names(&graph);
    put_text(&graph, 2, kind);
    put_value(&graph, 11, "x");
    put_value(&graph, 12, "y");
    put_number(&model, 1, 8);
    put_part(&model, 7, &graph);
    put_number(&opset, 2, 17);
    put_part(&model, 8, &opset);
    FILE *file = fopen(path, "wb");
    bool written = file != NULL && fwrite(model.bytes, 1, model.size, file) == model.size;
    free(model.bytes);
    return file != NULL && fclose(file) == 0 && written ? 0 : 3;
}

static int write_array(double first, double step, int rows, const char *path) {
    char header[128];
    int length =
        snprintf(header, sizeof header,
                 "\x93NUMPY\x01%c\x76%c{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 4), }", 0, 0, rows);
    memset(header + length, ' ', sizeof header - (size_t)length);
    header[sizeof header - 1] = '\n'; /* 10 bytes and 118 = 0x76 of header */
    FILE *file = fopen(path, "wb");
    bool written = file != NULL && fwrite(header, 1, sizeof header, file) == sizeof header;
    for (int i = 0; written && i < 4 * rows; i++) {
        float number = (float)(first + step * i);
        written = fwrite(&number, sizeof number, 1, file) == 1;
    }
    return file != NULL && fclose(file) == 0 && written ? 0 : 3;
}

/* ---- JSON ---- */

/* The value at a path such as "nodes.0.op"; *length is set for a path that ends in '#'. */
static json_t *find_value(json_t *value, char *path, bool *length) {
    size_t end = strlen(path);
    *length = end > 0 && path[end - 1] == '#';
    if (*length)
        path[end - 1] = '\0';
    for (char *part = strtok(path, "."); part != NULL && value != NULL; part = strtok(NULL, "."))
        value = json_is_array(value) ? json_array_get(value, (size_t)atoi(part)) : json_object_get(value, part);
    return value;
}

static bool check_value(json_t *all, const char *text) {
    char path[512], found[512] = "nothing";
    const char *equals = strchr(text, '=');
    if (equals == NULL || (size_t)(equals - text) >= sizeof path)
        return false;
    memcpy(path, text, (size_t)(equals - text));
    path[equals - text] = '\0';
    bool length;
    json_t *value = find_value(all, path, &length);
    char *dump = NULL;
    if (value != NULL && length)
        snprintf(found, sizeof found, "%zu", json_is_array(value) ? json_array_size(value) : json_object_size(value));
    else if (json_is_string(value))
        snprintf(found, sizeof found, "%s", json_string_value(value));
    else if (value != NULL && (dump = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT)) != NULL)
        snprintf(found, sizeof found, "%s", dump);
    free(dump);
    if (strcmp(found, equals + 1) == 0)
        return true;
    fprintf(stderr, "%s: found %s\n", text, found);
    return false;
}

static int check_json(const char *path, int count, char **texts) {
    json_error_t error;
    json_t *all = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (all == NULL) {
        fprintf(stderr, "%s:%d: %s\n", path, error.line, error.text);
        return 1;
    }
    bool right = true;
    for (int i = 0; i < count; i++)
        right = check_value(all, texts[i]) && right;
    json_decref(all);
    return right ? 0 : 1;
}

/* ---- markup ---- */

#define DEEPEST 64

static bool is_void(const char *tag) {
    static const char *const names[] = {"meta", "br", "hr", "img", "link"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(tag, names[i]) == 0)
            return true;
    }
    return false;
}

/* Reads the tag at `at` ("<…>") and keeps `open`, the names of the tags that are open. Its end, or NULL. */
static const char *read_tag(const char *at, char open[DEEPEST][32], int *depth) {
    bool closes = at[1] == '/', quoted = false;
    const char *name = at + 1 + closes, *end = name;
    char tag[32] = "";
    for (size_t i = 0; (isalnum((unsigned char)*end)) && i + 1 < sizeof tag; i++)
        tag[i] = *end++;
    for (; *end != '\0' && (quoted || *end != '>'); end++)
        quoted ^= *end == '"';
    if (*end == '\0' || (tag[0] == '\0' && at[1] != '!'))
        return NULL;
    if (closes)
        return *depth > 0 && strcmp(open[--*depth], tag) == 0 ? end + 1 : NULL;
    if (at[1] != '!' && end[-1] != '/' && !is_void(tag)) {
        if (*depth == DEEPEST)
            return NULL;
        strcpy(open[(*depth)++], tag);
    }
    return end + 1;
}

static bool is_entity(const char *at) {
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&quot;"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strncmp(at, names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

static int check_markup(const char *path) {
    static char text[1 << 25];
    char open[DEEPEST][32];
    int depth = 0;
    FILE *file = fopen(path, "rb");
    size_t size = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    if (size == 0 || strlen(text) != size)
        return 1;
    for (const char *at = text; *at != '\0';) {
        const char *next = at + 1;
        if (*at == '<')
            next = read_tag(at, open, &depth);
        else if ((*at == '&' && !is_entity(at)) || ((unsigned char)*at < ' ' && *at != '\n'))
            next = NULL;
        if (next == NULL) {
            fprintf(stderr, "%s: byte %zu: %.60s\n", path, (size_t)(at - text), at);
            return 1;
        }
        at = next;
    }
    return depth == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
    if (argc == 5 && strcmp(argv[1], "model") == 0)
        return write_model(argv[2], atoi(argv[3]), argv[4]);
    if (argc == 6 && strcmp(argv[1], "array") == 0)
        return write_array(atof(argv[2]), atof(argv[3]), atoi(argv[4]), argv[5]);
    if (argc >= 3 && strcmp(argv[1], "json") == 0)
        return check_json(argv[2], argc - 3, argv + 3);
    if (argc == 3 && strcmp(argv[1], "markup") == 0)
        return check_markup(argv[2]);
    return 2;
}
