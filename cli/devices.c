/* samebit devices: the GPUs of this machine, and whether Samebit can use them. */
#include "commands.h"
#include "support.h"
#include "text.h"

const option devices_options[] = {
    {"json", NULL, false, "Print the driver and the devices as JSON"},
    {0},
};

/* A release of the CUDA interface as its users write it; 13000 is 13.0. */
static const char *release_text(int version, char room[TEXT_BYTES]) {
    snprintf(room, TEXT_BYTES, "%d.%d", version / 1000, version % 1000 / 10);
    return room;
}

static void print_device(const sb_device_description *device) {
    char name[TEXT_BYTES], all[TEXT_BYTES], unused[TEXT_BYTES];
    printf("%d  %s\n", device->index, printable(device->name, name));
    printf("   compute capability %d.%d, %d multiprocessors, %s", device->compute_major, device->compute_minor,
           device->multiprocessors, bytes_text((double)device->memory_bytes, all));
    if (device->memory_free_bytes >= 0)
        printf(", %s free", bytes_text((double)device->memory_free_bytes, unused));
    if (device->kernels != NULL)
        printf("\n   kernels: %s\n", device->kernels);
    else
        printf("\n   not usable: %s\n", device->why);
}

static void print_devices(const sb_device_list *list) {
    char library[TEXT_BYTES], release[TEXT_BYTES];
    const sb_driver_description *driver = sb_device_list_driver(list);
    printf("CUDA driver: ");
    if (driver->state == SB_DRIVER_READY)
        printf("%s (%s)\n", release_text(driver->version, release), printable(driver->library, library));
    else
        printf("%s: %s\n", sb_driver_state_name(driver->state), driver->why);
    for (int i = 0; i < sb_device_list_count(list); i++)
        print_device(sb_device_list_at(list, i));
}

static json_t *device_json(const sb_device_description *device) {
    char compute[TEXT_BYTES];
    snprintf(compute, sizeof compute, "%d.%d", device->compute_major, device->compute_minor);
    return json_pack("{s:i, s:o, s:s, s:i, s:I, s:o, s:o, s:o}", "index", device->index, "name",
                     text_json(device->name), "compute_capability", compute, "multiprocessors", device->multiprocessors,
                     "memory_bytes", (json_int_t)device->memory_bytes, "memory_free_bytes",
                     device->memory_free_bytes >= 0 ? json_integer(device->memory_free_bytes) : json_null(), "kernels",
                     text_json(device->kernels), "why", text_json(device->why));
}

static json_t *devices_json(const sb_device_list *list) {
    const sb_driver_description *driver = sb_device_list_driver(list);
    char release[TEXT_BYTES];
    json_t *devices = json_array();
    for (int i = 0; i < sb_device_list_count(list); i++)
        json_array_append_new(devices, device_json(sb_device_list_at(list, i)));
    return json_pack("{s:{s:s, s:o, s:o, s:o}, s:o}", "driver", "state", sb_driver_state_name(driver->state), "library",
                     text_json(driver->library), "version",
                     driver->version > 0 ? text_json(release_text(driver->version, release)) : json_null(), "why",
                     text_json(driver->why), "devices", devices);
}

int run_devices(const arguments *arguments) {
    sb_device_list *list = NULL;
    sb_error error;
    if (sb_device_list_create(NULL, &list, &error) != SB_OK)
        return report(&error);
    sb_driver_state state = sb_device_list_driver(list)->state;
    /* A machine without a GPU is an answer; a driver that does not work is a failure. */
    int code = state == SB_DRIVER_TOO_OLD || state == SB_DRIVER_FAILED ? EXIT_FAILED : EXIT_RIGHT;
    if (!has_option(arguments, "json"))
        print_devices(list);
    else if (!print_json_value(stdout, devices_json(list)))
        code = EXIT_FAILED;
    sb_device_list_release(list);
    return code;
}
