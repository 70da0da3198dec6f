#ifndef OPERON_PAGE_H
#define OPERON_PAGE_H

#include <stddef.h>

/// A file of the page, in the program, so that an installed program has it.
struct operon_page_file {
    const char *_Nonnull name;
    const char *_Nonnull type;
    const unsigned char *_Nonnull bytes;
    size_t count;
};

/// All files of the page. They are never freed.
const struct operon_page_file *_Nonnull operon_page_files(size_t *_Nonnull count);

#endif
