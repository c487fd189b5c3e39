package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"carma/test/browser"
)

// TestSiteInBrowser reads the site from the disk: pages in three widths, light and dark,
// the search by the keyboard, the menu of a phone.
func TestSiteInBrowser(t *testing.T) {
	browser.Find(t)
	out := filepath.Join(t.TempDir(), "site")
	if _, err := write("../..", out, "1.2.3"); err != nil {
		t.Fatal(err)
	}
	b := browser.New(t, "file://"+out)
	open := func(page string) {
		b.Do(chromedp.Navigate("file://" + out + "/" + page))
		b.Await(`document.querySelector('article h1') && document.readyState === 'complete'`)
	}
	for _, page := range []string{"index.html", "install.html", "api.html", "results.html", "hardware/index.html"} {
		for _, as := range []struct {
			width int64
			theme string
			axe   bool
		}{{360, "light", page != "api.html"}, {1024, "dark", false}, {1600, "dark", true}} { // axe takes a while for the long page
			b.As(as.width, as.theme)
			open(page)
			if as.axe {
				b.Axe(page)
			}
			b.Picture(fmt.Sprintf("site-%s-%d", strings.ReplaceAll(page, "/", "-"), as.width))
			// A phone's window becomes as wide as the page.
			if wide := b.Of(`document.documentElement.scrollWidth`); wide != fmt.Sprint(as.width) {
				t.Errorf("%s at %d: it is %s pixels wide", page, as.width, wide)
			}
			if broken := b.Of(`[...document.images].filter((i) => !i.complete || !i.naturalWidth).map((i) => i.src)`); broken != "" {
				t.Errorf("%s: pictures are not there: %s", page, broken)
			}
		}
	}

	// The search, by keys alone; from a folder below the others.
	b.As(1024, "light")
	open("hardware/index.html")
	search := func(text string) {
		b.Do(chromedp.KeyEvent("/"))
		b.Await(`document.activeElement.id === 'search'`)
		b.Of(`document.activeElement.value = ''`) // a browser that is not told by events swallows the key itself
		b.Do(chromedp.KeyEvent(text))
		b.Await(`document.activeElement.value === '` + text + `'`)
	}
	search("quota-gpus")
	b.Await(`document.querySelectorAll('#found li').length > 1 && document.querySelector('article').hidden && document.querySelector('#found mark')`)
	b.Axe("search")
	b.Do(chromedp.KeyEvent(kb.Enter))
	b.Await(`document.activeElement.closest('#found')`)
	b.Do(chromedp.KeyEvent(kb.Enter))
	b.Await(`!location.pathname.includes('hardware') && document.readyState === 'complete' && document.querySelector('article')?.innerText.includes('quota-gpus')`)
	search("zzzz-nothing")
	b.Await(`document.querySelector('#found h1').textContent === 'Nothing found'`)
	b.Do(chromedp.KeyEvent(kb.Escape))
	b.Await(`document.getElementById('found').hidden && !document.querySelector('article').hidden`)

	// The menu of a phone.
	b.As(360, "light")
	b.Await(`getComputedStyle(document.getElementById('menu')).display === 'none'`)
	b.Of(`document.getElementById('open').click()`)
	b.Await(`getComputedStyle(document.getElementById('menu')).display === 'block' && document.getElementById('open').getAttribute('aria-expanded') === 'true'`)
	b.Axe("menu")
	b.Well()
}
