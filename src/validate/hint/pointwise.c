/* pointwise.c: how element-wise operators go wrong.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/hint/hint.h"

static void entries(hint *h, bool modulate)
{
    static const char *const what[ENTRIES] = {
        "", "the first frame's for all rows", "the last frame's for all rows",
        "of the next frame", "of the frame before",
        "entry r mod frames for row r (r / rows belongs)"};
    for (entry_fault e = ENTRY_FIRST; e < ENTRIES; e++) {
        const element_fault both = {.a = e, .b = e}, scale = {.a = e},
                            shift = {.b = e};
        hint_try_fault(h, &both, "%s%s", modulate ? "scale and shift "
                                                  : "gate ", what[e]);
        if (!modulate) continue;
        hint_try_fault(h, &scale, "scale %s", what[e]);
        hint_try_fault(h, &shift, "shift %s", what[e]);
    }
}

/* Every other form of the operator, and every other activation. */
void hint_forms(hint *h)
{
    const int kind = (int)h->q->kind;
    hint_not_applied(h);
    for (element_form i = FORM_RIGHT; i < FORMS; i++) {
        const char *what = plain_forms[i].what;
        const element_fault f = {.form = i};
        if (what && plain_forms[i].kind == kind)
            hint_try_fault(h, &f, "%s", what);
        else if (what && plain_forms[i].kind == OP_KINDS
                 && (kind == OP_SILU || kind == OP_GELU_TANH))
            hint_try_fault(h, &f, "%s instead of %s", what,
                           plain_forms[kind == OP_SILU ? SILU : GELU].what);
    }
}

void hint_pointwise(hint *h)
{
    const op_call *q = h->q;
    hint_forms(h);
    if (q->n > q->rows && q->a) entries(h, q->kind == OP_MODULATE);
    if (q->stride > q->c)
        hint_try_fault(h, &(element_fault){.packed = true},
                       "stride between frames ignored (C assumed)");
}
