/* weights CHECKPOINT FILE.npz: all tensors of a checkpoint as f32. */
#include <samebit/io.h>
#include <stdio.h>
#include <stdlib.h>

#include "checkpoint/checkpoint.h"

int main(int argc, char **argv) {
    sb_checkpoint *checkpoint;
    sb_error error;
    if (argc != 3)
        return 2;
    if (sb_checkpoint_open(argv[1], &checkpoint, &error) != SB_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    int count = (int)checkpoint->tensor_count;
    const char **names = calloc((size_t)count + 1, sizeof *names);
    sb_tensor **tensors = calloc((size_t)count + 1, sizeof *tensors);
    sb_status status = names != NULL && tensors != NULL ? SB_OK : SB_ERROR_OUT_OF_MEMORY;
    for (int i = 0; i < count && status == SB_OK; i++) {
        names[i] = checkpoint->tensors[i].name;
        status = sb_checkpoint_read(checkpoint, &checkpoint->tensors[i], SB_F32, &tensors[i], &error);
    }
    if (status == SB_OK)
        status = sb_tensors_save(argv[2], count, names, tensors, &error);
    if (status != SB_OK)
        fprintf(stderr, "%s\n", error.message);
    for (int i = 0; i < count; i++)
        sb_tensor_release(tensors[i]);
    sb_checkpoint_close(checkpoint);
    free(names);
    free(tensors);
    return status != SB_OK;
}
