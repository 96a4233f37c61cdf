/* The unwinder of gcc calls this function of glibc, which musl does not have. Built into static
   programs for x86_64. */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>

/* As in glibc's <dlfcn.h>. */
struct dl_find_object {
    unsigned long long flags;
    void *map_start;
    void *map_end;
    struct link_map *link_map;
    void *eh_frame;
    unsigned long long reserved[7];
};

struct search {
    uintptr_t at;
    struct dl_find_object *found;
};

static int look(struct dl_phdr_info *info, size_t size, void *argument) {
    struct search *search = argument;
    const ElfW(Phdr) *code = 0, *frames = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD && search->at - start < header->p_memsz) code = header;
        if (header->p_type == PT_GNU_EH_FRAME) frames = header;
    }
    if (!code || !frames) return 0;
    search->found->flags = 0;
    search->found->map_start = (void *)(info->dlpi_addr + code->p_vaddr);
    search->found->map_end = (char *)search->found->map_start + code->p_memsz;
    search->found->link_map = 0;
    search->found->eh_frame = (void *)(info->dlpi_addr + frames->p_vaddr);
    return 1;
}

int _dl_find_object(void *at, struct dl_find_object *found) {
    struct search search = {(uintptr_t)at, found};
    return dl_iterate_phdr(look, &search) ? 0 : -1;
}
