/* browser.h: pages of the program in a browser without a window.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A script is appended to a copy of the page without its policy, which lets no
 * other script run. The copy stands in two frames, as wide as a desktop's
 * window and as a phone. It measures the page as it opens,
 * unfolds everything and measures again, and tells the outer page. */
#ifndef TESTS_CLI_BROWSER_H
#define TESTS_CLI_BROWSER_H

#include "tests/cli/program.h"

enum { DESKTOP = 1280, PHONE = 380 };

/* Of one page at one width. */
typedef struct page_size {
    int width;           /* of the frame                                      */
    int high;            /* folded                                            */
    int beyond;          /* pixels that stick out on the right                */
    int narrow;          /* texts of one or two letters per line              */
    int overlap, cut;    /* words of a picture on others; outside of it       */
    char what[160];      /* the first of these                                */
} page_size;

static const char page_script[] =
    "<script>addEventListener('load',()=>setTimeout(()=>{const E=document.documentElement;"
    "let what='';const say=(k,s)=>{what=what||k+': '+s.trim().slice(0,60)};"
    "function look(){let narrow=0,overlap=0,cut=0;"
    "for(const e of document.querySelectorAll('td,th,dd,dt,p,li,h1,h2,"
    "figcaption,code,b')){const s=e.textContent.trim();"
    "const g=document.createRange();g.selectNodeContents(e);"
    "const r=g.getBoundingClientRect();"
    "const line=parseFloat(getComputedStyle(e).fontSize)*1.5;"
    "const lines=r.height/line;"
    "if(s.length>5&&r.width>0&&lines>3&&s.length/lines<3){narrow++;"
    "say('narrow',s)}}"
    "for(const g of document.querySelectorAll('svg')){"
    "const o=g.getBoundingClientRect();if(!o.width)continue;"
    "const t=[...g.querySelectorAll('text')].map(e=>["
    "e.getBoundingClientRect(),e.textContent]);"
    "t.forEach(([a,s],i)=>{"
    "if(a.left<o.left-2||a.right>o.right+2||a.top<o.top-2"
    "||a.bottom>o.bottom+2){cut++;say('cut',s)}"
    "for(const [b,u] of t.slice(i+1)){"
    "if(Math.min(a.right,b.right)-Math.max(a.left,b.left)>2&&"
    "Math.min(a.bottom,b.bottom)-Math.max(a.top,b.top)>4){"
    "overlap++;say('overlap',s+' | '+u)}}})}"
    "return [E.scrollWidth-E.clientWidth,narrow,overlap,cut]}"
    "const high=Math.round(document.body.getBoundingClientRect().height);"
    "const a=look();"
    "for(const d of document.querySelectorAll('details'))d.open=true;"
    "const b=look();"
    "parent.postMessage([E.clientWidth,high,...a.map((x,i)=>"
    "Math.max(x,b[i])),what.replace(/[^ -~]|[<>&\"]/g,'_')].join(' '),'*')},"
    "500))"
    "</script>\n";

static const char frames[] =
    "<html><body><iframe width=1280 height=900 style='border:0' "
    "src='measured.html'></iframe><iframe width=380 height=900 "
    "style='border:0' src='measured.html'></iframe><script>"
    "let n=0;addEventListener('message',e=>{document.body.setAttribute("
    "'data-page'+n++,'@'+e.data+'@')})</script></body></html>\n";

/* Run it on `page` with an option; 0 when it ended well. What it leaves stands
 * in the folder of the test. */
static inline int browse(const char *name, const char *page,
                         const char *option, const char *out)
{
    char command[3000];
    snprintf(command, sizeof command, "HOME='%s' TMPDIR='%s' timeout 120 %s "
             "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage "
             "--hide-scrollbars --user-data-dir='%s/browser' "
             "--enable-logging=stderr %s 'file://%s' > '%s' 2> '%s'", folder,
             folder, name, folder, option, page, out, at("console"));
    return system(command);
}

/* The browser's name, NULL when none is installed or it shows no page here:
 * it needs more files and threads than a tight limit of the user allows. */
static const char *browser(void)
{
    static const char *const name[] = {"chromium", "chromium-browser",
                                       "google-chrome"};
    char command[1200];
    put_file(at("page.html"), "<p>shown</p>", 0600);
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++) {
        snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1",
                 name[i]);
        if (system(command)) continue;
        if (!browse(name[i], at("page.html"), "--dump-dom", at("dom"))
            && strstr(text_of(at("dom")), "shown")) return name[i];
    }
    return NULL;
}

/* Measure a page in both widths; false when the browser said nothing. */
static inline bool page_measure(page_size size[2], const char *name,
                                const char *page)
{
    char command[1400];
    put_file(at("script"), page_script, 0600);
    put_file(at("frames.html"), frames, 0600);
    snprintf(command, sizeof command, "sed 's/<meta http-equiv[^>]*>//' '%s'"
             " | cat - '%s' > '%s'", page,
             at("script"), at("measured.html"));
    memset(size, 0, 2 * sizeof *size);
    if (system(command) || browse(name, at("frames.html"),
            "--window-size=1700,950 --virtual-time-budget=20000 --dump-dom",
            at("dom"))) return false;
    int found = 0;
    for (const char *s = text_of(at("dom")); (s = strstr(s, "=\"@")); s++) {
        page_size p = {0};
        if (sscanf(s + 3, "%d %d %d %d %d %d %159[^@]", &p.width, &p.high,
                   &p.beyond, &p.narrow, &p.overlap, &p.cut, p.what) < 6)
            continue;
        size[p.width != DESKTOP] = p;
        found++;
    }
    return found == 2 && size[0].width == DESKTOP && size[1].width == PHONE;
}

#endif
