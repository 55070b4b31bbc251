/* probe.c: a block that is freed twice, which every analyzer must find.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

int main(void)
{
    char *block = malloc(1);
    free(block);
    free(block);
    return 0;
}
