package test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"carma/test/browser"
)

// TestSite opens the site that make docs has written from the disk: a page, the search, the API.
func TestSite(t *testing.T) {
	site, err := filepath.Abs("../bin/site")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(site); err != nil {
		t.Skip("make docs was not run")
	}
	b := browser.New(t, "file://"+site)
	open := func(page, ready string) {
		b.Do(chromedp.Navigate("file://" + site + "/" + page))
		b.Await(`document.readyState === 'complete' && ` + ready)
	}
	b.As(360, "light")
	open("index.html", `document.querySelector('h1')`)
	if wide := b.Of(`document.documentElement.scrollWidth`); wide != "360" {
		t.Errorf("the page is %s pixels wide on a phone of 360", wide)
	}
	if broken := b.Of(`[...document.images].filter((i) => !i.complete || !i.naturalWidth).map((i) => i.src)`); broken != "" {
		t.Errorf("pictures are missing: %s", broken)
	}
	b.As(1024, "light")
	open("search.html?q=quota-gpus", `document.querySelectorAll('#search-results li').length > 1`)
	open("docs/api.html", `document.querySelector('a[href="../api.html"]')`)
	open("api.html#/default/hold", `document.body.innerText.includes('tasks/17/hold')`)
	b.Well()
}
