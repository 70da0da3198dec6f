#ifndef OPERON_API_H
#define OPERON_API_H

#include <stddef.h>

/// The OpenAPI document, in the program, so that an installed program has it: UTF-8, without a final
/// zero.
const unsigned char *_Nonnull operon_api_document(size_t *_Nonnull count);

#endif
