#include "operon_api.h"

// Swift has nothing that puts a file into a program without a second copy of it in source code.
// #embed is part of C23.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char document[] = {
#embed "openapi.json"
};

const unsigned char *operon_api_document(size_t *count) {
    *count = sizeof document;
    return document;
}
