/* Tensors on a device: exchanged with other libraries through DLPack,
 * and refused by what follows addresses on the host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include <samebit/dlpack.h>

#include "session_models.h"
#include "tensor/npy.h"

/* ---- DLPack ---- */

/* Another library's tensor: memory of the device that a copy of ours owns. */
typedef struct foreign {
    DLManagedTensorVersioned managed;
    DLManagedTensor legacy;
    int64_t dims[SB_MAX_RANK], strides[SB_MAX_RANK];
    sb_tensor *owner;
    int deleted;
} foreign;

static void delete_foreign(DLManagedTensorVersioned *self) {
    foreign *foreign = self->manager_ctx;
    foreign->deleted++;
    sb_tensor_release(foreign->owner);
}

static void delete_legacy(DLManagedTensor *self) {
    foreign *foreign = self->manager_ctx;
    foreign->deleted++;
    sb_tensor_release(foreign->owner);
}

static void make_foreign(foreign *made, sb_device *device, sb_tensor *host) {
    *made = (foreign){.owner = to_device(device, host)};
    memcpy(made->dims, made->owner->dims, sizeof made->dims);
    memcpy(made->strides, made->owner->strides, sizeof made->strides);
    DLTensor tensor = {.data = made->owner->data,
                       .device = {kDLCUDA, 0},
                       .ndim = made->owner->rank,
                       .dtype = {kDLFloat, 32, 1},
                       .shape = made->dims,
                       .strides = made->strides};
    made->managed = (DLManagedTensorVersioned){
        .version = {1, 0}, .manager_ctx = made, .deleter = delete_foreign, .dl_tensor = tensor};
    made->legacy = (DLManagedTensor){.dl_tensor = tensor, .manager_ctx = made, .deleter = delete_legacy};
}

/* Imported memory is an input without a copy, and goes back when nobody wants it any more. */
static void test_import(void **unused) {
    for (int legacy = 0; legacy < 2; legacy++) {
        setting s = start_device();
        sb_model *model = network(false);
        sb_session *cpu = cpu_session(model);
        sb_session_options options = options_on(s.device);
        options.device_outputs = true;
        sb_session *session = session_with(model, &options);
        foreign foreigners[NETWORK_INPUTS];
        sb_tensor *host[NETWORK_INPUTS], *inputs[NETWORK_INPUTS], *outputs[NETWORK_OUTPUTS], *expected[NETWORK_OUTPUTS];
        network_inputs(host, 6, 1);
        run_session(cpu, host, expected);
        for (int i = 0; i < NETWORK_INPUTS; i++) {
            make_foreign(&foreigners[i], s.device, host[i]);
            if (legacy != 0)
                MUST(sb_tensor_from_dlpack_legacy_on(s.device, &foreigners[i].legacy, &inputs[i], error));
            else
                MUST(sb_tensor_from_dlpack_on(s.device, &foreigners[i].managed, &inputs[i], error));
            assert_true(sb_tensor_is_on_device(inputs[i]));
            assert_ptr_equal(sb_tensor_data(inputs[i]), foreigners[i].owner->data);
        }
        for (int run = 0; run < 4; run++) {
            sb_device_counters before = counters_of(s.device);
            run_session(session, inputs, outputs);
            sb_device_counters after = counters_of(s.device);
            assert_true(run == 0 || after.copies_to_device == before.copies_to_device);
            assert_int_equal(after.copies_to_host, before.copies_to_host);
            for (int i = 0; i < NETWORK_OUTPUTS; i++)
                check_same(s.device, outputs[i], expected[i]);
            release_all(outputs, NETWORK_OUTPUTS);
        }
        sb_session_destroy(session); /* which keeps nothing of its inputs */
        sb_tensor *view;
        MUST(sb_tensor_slice(inputs[0], 0, 1, 2, 1, &view, error));
        release_all(inputs, NETWORK_INPUTS);
        assert_int_equal(foreigners[0].deleted, 0);
        assert_int_equal(foreigners[1].deleted, 1);
        sb_tensor_release(view);
        assert_int_equal(foreigners[0].deleted, 1);
        release_all(host, NETWORK_INPUTS);
        release_all(expected, NETWORK_OUTPUTS);
        sb_session_destroy(cpu);
        sb_model_release(model);
        finish(&s);
    }
}

/* Strides, an offset in bytes, and no strides at all. */
static void test_import_of_views(void **unused) {
    setting s = start_device();
    sb_tensor *host = random_tensor(SB_F32, 2, (int64_t[]){6, 8}, 1), *transposed, *tail;
    MUST(sb_tensor_transpose(host, (int[]){1, 0}, &transposed, error));
    MUST(sb_tensor_slice(host, 0, 2, 4, 1, &tail, error));
    foreign foreign;
    sb_tensor *tensor;
    make_foreign(&foreign, s.device, host);
    foreign.dims[0] = 8;
    foreign.dims[1] = 6;
    foreign.strides[0] = 1;
    foreign.strides[1] = 8;
    MUST(sb_tensor_from_dlpack_on(s.device, &foreign.managed, &tensor, error));
    check_same(s.device, tensor, transposed);
    sb_tensor_release(tensor);
    assert_int_equal(foreign.deleted, 1);
    make_foreign(&foreign, s.device, host);
    foreign.dims[0] = 4;
    foreign.managed.dl_tensor.strides = NULL;
    foreign.managed.dl_tensor.byte_offset = 2 * 8 * sizeof(float);
    MUST(sb_tensor_from_dlpack_on(s.device, &foreign.managed, &tensor, error));
    check_same(s.device, tensor, tail);
    sb_tensor_release(tensor);
    /* Memory of the host may come the same way. */
    DLManagedTensorVersioned *managed;
    MUST(sb_tensor_to_dlpack(transposed, &managed, error));
    MUST(sb_tensor_from_dlpack_on(s.device, managed, &tensor, error));
    assert_false(sb_tensor_is_on_device(tensor));
    assert_true(sb_tensor_equal(tensor, transposed));
    sb_tensor_release(tensor);
    sb_tensor_release(tail);
    sb_tensor_release(transposed);
    sb_tensor_release(host);
    finish(&s);
}

/* What is refused stays its maker's. */
static void test_import_errors(void **unused) {
    setting s = start_device();
    sb_tensor *host = random_tensor(SB_F32, 2, (int64_t[]){2, 3}, 1), *tensor = NULL;
    foreign foreign;
    sb_error error = {SB_OK, ""};
    make_foreign(&foreign, s.device, host);
    foreign.managed.dl_tensor.device.device_id = foreign.legacy.dl_tensor.device.device_id = 3;
    assert_int_equal(sb_tensor_from_dlpack_on(s.device, &foreign.managed, &tensor, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_says(error, "on CUDA device 3, not on device 0");
    assert_int_equal(sb_tensor_from_dlpack_legacy_on(s.device, &foreign.legacy, &tensor, &error),
                     SB_ERROR_INVALID_ARGUMENT);
    foreign.managed.dl_tensor.device = (DLDevice){(DLDeviceType)10, 0}; /* kDLROCM */
    assert_int_equal(sb_tensor_from_dlpack_on(s.device, &foreign.managed, &tensor, &error), SB_ERROR_UNSUPPORTED);
    assert_says(error, "device type 10");
    foreign.managed.dl_tensor.device = (DLDevice){kDLCUDA, 0};
    assert_int_equal(sb_tensor_from_dlpack(&foreign.managed, &tensor, &error), SB_ERROR_UNSUPPORTED);
    assert_says(error, "sb_tensor_from_dlpack_on");
    foreign.legacy.dl_tensor.device = (DLDevice){kDLCUDA, 0};
    assert_int_equal(sb_tensor_from_dlpack_legacy(&foreign.legacy, &tensor, &error), SB_ERROR_UNSUPPORTED);
    foreign.managed.dl_tensor.dtype = (DLDataType){kDLComplex, 64, 1};
    assert_int_equal(sb_tensor_from_dlpack_on(s.device, &foreign.managed, &tensor, &error), SB_ERROR_UNSUPPORTED);
    foreign.managed.dl_tensor.dtype = (DLDataType){kDLFloat, 32, 1};
    foreign.managed.dl_tensor.byte_offset = 1;
    assert_int_equal(sb_tensor_from_dlpack_on(s.device, &foreign.managed, &tensor, &error), SB_ERROR_INVALID_ARGUMENT);
    foreign.managed.version.major = 2;
    assert_int_equal(sb_tensor_from_dlpack_on(s.device, &foreign.managed, &tensor, &error), SB_ERROR_UNSUPPORTED);
    assert_int_equal(sb_tensor_from_dlpack_on(s.device, NULL, &tensor, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_tensor_from_dlpack_legacy_on(s.device, NULL, &tensor, &error), SB_ERROR_INVALID_ARGUMENT);
    foreign.managed.version.major = 1;
    foreign.managed.dl_tensor.byte_offset = 0;
    for (int64_t successes = 0;; successes++) {
        sb_allocation_fail_after(successes, false);
        sb_status status = sb_tensor_from_dlpack_on(s.device, &foreign.managed, &tensor, &error);
        sb_allocation_fail_after(-1, false);
        if (status == SB_OK)
            break;
        assert_int_equal(status, SB_ERROR_OUT_OF_MEMORY);
        assert_null(tensor);
        assert_int_equal(foreign.deleted, 0);
    }
    sb_tensor_release(tensor);
    assert_int_equal(foreign.deleted, 1);
    sb_tensor_release(host);
    finish(&s);
}

/* An output on the device goes to another library and comes back, and outlives session and device. */
static void test_export(void **unused) {
    setting s = start_device();
    sb_model *model = network(false);
    sb_session *cpu = cpu_session(model);
    sb_session_options options = options_on(s.device);
    options.device_outputs = true;
    sb_session *session = session_with(model, &options);
    sb_tensor *inputs[NETWORK_INPUTS], *outputs[NETWORK_OUTPUTS], *expected[NETWORK_OUTPUTS];
    DLManagedTensorVersioned *managed[NETWORK_OUTPUTS];
    network_inputs(inputs, 5, 2);
    run_session(cpu, inputs, expected);
    run_session(session, inputs, outputs);
    for (int i = 0; i < NETWORK_OUTPUTS; i++) {
        MUST(sb_tensor_to_dlpack(outputs[i], &managed[i], error));
        assert_int_equal(managed[i]->dl_tensor.device.device_type, kDLCUDA);
        assert_int_equal(managed[i]->dl_tensor.device.device_id, 0);
        assert_ptr_equal(managed[i]->dl_tensor.data, sb_tensor_data(outputs[i]));
        for (int d = 0; d < outputs[i]->rank; d++)
            assert_int_equal(managed[i]->dl_tensor.strides[d], outputs[i]->strides[d]);
    }
    release_all(outputs, NETWORK_OUTPUTS);
    run_session(session, inputs, outputs); /* which does not write what was exported */
    release_all(outputs, NETWORK_OUTPUTS);
    sb_session_destroy(session);
    for (int i = 0; i < NETWORK_OUTPUTS; i++) {
        MUST(sb_tensor_from_dlpack_on(s.device, managed[i], &outputs[i], error));
        check_same(s.device, outputs[i], expected[i]);
    }
    release_all(inputs, NETWORK_INPUTS);
    release_all(expected, NETWORK_OUTPUTS);
    sb_session_destroy(cpu);
    sb_model_release(model);
    sb_device_release(s.device);
    release_all(outputs, NETWORK_OUTPUTS);
    check_nothing_lives(s.fake);
    assert_int_equal(sb_allocation_count().live_blocks, s.blocks);
}

/* ---- what stays on the host ---- */

static void test_host_functions_refuse(void **unused) {
    setting s = start_device();
    sb_tensor *host = random_tensor(SB_F32, 2, (int64_t[]){4, 6}, 1), *tensor = to_device(s.device, host), *view, *copy;
    sb_error error = {SB_OK, ""};
    sb_comparison comparison;
    char digest[SB_DIGEST_TEXT_BYTES];
    const char *name = "x", *path = "unwritten.npy";
    sb_value value = sb_value_of_tensor(tensor), sequence;
    void *bytes;
    size_t size;
    MUST(sb_tensor_transpose(tensor, (int[]){1, 0}, &view, error));
    assert_int_equal(sb_tensor_contiguous(view, &copy, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_says(error, "lies on device 0");
    assert_says(error, "sb_tensor_to_host");
    MUST(sb_tensor_contiguous(tensor, &copy, error)); /* is itself */
    assert_ptr_equal(copy, tensor);
    sb_tensor_release(copy);
    assert_int_equal(sb_tensor_compare(tensor, host, 0, 0, &comparison, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_tensor_compare(host, tensor, 0, 0, &comparison, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_says(error, "cannot be compared");
    assert_int_equal(sb_digest_values(1, &value, digest, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_says(error, "cannot be digested");
    assert_int_equal(sb_tensor_save(path, tensor, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_tensor_save(path, view, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_says(error, "cannot be written");
    assert_int_equal(sb_tensors_save(path, 1, &name, &tensor, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_npy_write(tensor, &bytes, &size, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_value_of_sequence(SB_F32, 1, &value, &sequence, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_tensor_to_device(s.device, tensor, &copy, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_null(fopen(path, "rb"));
    check_same(s.device, view, view); /* views come to the host whole */
    sb_tensor_release(view);
    sb_tensor_release(tensor);
    sb_tensor_release(host);
    finish(&s);
}

/* Text has no place on a device, and a tensor of one device none on another. */
static void test_other_places(void **unused) {
    setting s = start_device();
    sb_tensor *text, *host = random_tensor(SB_F32, 2, (int64_t[]){4, 6}, 1), *copy = NULL;
    sb_error error = {SB_OK, ""};
    MUST(sb_tensor_create(SB_STRING, 1, (int64_t[]){2}, &text, error));
    assert_int_equal(sb_tensor_to_device(s.device, text, &copy, &error), SB_ERROR_UNSUPPORTED);
    assert_null(copy);
    sb_tensor_release(text);
    sb_device *same = open_device();
    sb_tensor *here = to_device(s.device, host);
    /* The device opened twice is one context, and two owners of memory. */
    assert_int_equal(sb_tensor_to_host(same, here, &copy, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_says(error, "another device");
    DLManagedTensorVersioned *managed;
    MUST(sb_tensor_to_dlpack(here, &managed, error));
    MUST(sb_tensor_from_dlpack_on(same, managed, &copy, error));
    check_same(same, copy, host);
    sb_tensor_release(copy);
    sb_tensor_release(here);
    sb_device_release(same);
    sb_tensor_release(host);
    finish(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_import),
        cmocka_unit_test(test_import_of_views),
        cmocka_unit_test(test_import_errors),
        cmocka_unit_test(test_export),
        cmocka_unit_test(test_host_functions_refuse),
        cmocka_unit_test(test_other_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
