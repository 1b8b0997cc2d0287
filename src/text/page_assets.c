/* page_assets.c - the files of web/ as bytes of the program, so that a site needs nothing else. The
 * path is from the root of the tree, where the Makefile compiles. */
#include "text/page_html.h"

#define ASSET(label, path)                                                                         \
    __asm__(".pushsection .rodata\n" #label "_start:\n.incbin \"" path "\"\n" #label               \
            "_end:\n.byte 0\n.popsection\n");                                                      \
    extern const uint8_t label##_start[] __attribute__((visibility("hidden")));                    \
    extern const uint8_t label##_end[] __attribute__((visibility("hidden")))

ASSET(page_css, "web/wire.css");
ASSET(page_js, "web/wire.js");

void page_assets(struct page_asset assets[PAGE_ASSETS])
{
    assets[0] = (struct page_asset){
        "wire.css", view_of(page_css_start, (uint32_t)(page_css_end - page_css_start))};
    assets[1] = (struct page_asset){
        "wire.js", view_of(page_js_start, (uint32_t)(page_js_end - page_js_start))};
}
