#include "io/file.h"
tt_status torch_read(tt_ctx *ctx, tt_file *f) {
    return tt_fail(ctx, TT_EUNSUPPORTED, "%s: PyTorch files cannot be read yet", f->path);
}
