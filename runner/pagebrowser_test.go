package runner

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/test/browser"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// pages lists all screens, each with a text that shows that it is loaded.
var pages = []struct{ name, hash, there string }{
	{"overview", "#/", `document.querySelectorAll('.card .part').length > 4`},
	{"tasks", "#/tasks", `document.querySelectorAll('.tasks tbody tr').length > 9`},
	{"task", "#/task/4", `document.querySelector('.log div') && document.querySelector('.u-wrap canvas') && document.querySelectorAll('.decisions tbody tr').length > 3`},
	{"waiting", "#/task/20", `document.querySelector('.task details li') && document.querySelector('.decisions').textContent.includes('waits now')`},
	{"timeline", "#/timeline", `document.querySelector('.run .bar')`},
	{"users", "#/users", `document.querySelectorAll('.users tbody tr').length > 4`},
	{"history", "#/history", `document.querySelectorAll('.history tbody tr').length > 9`},
}

const (
	// brokenChips returns the state labels that have more lines than words.
	brokenChips = `[...document.querySelectorAll('.chip')].filter((c) => c.getBoundingClientRect().height > 1.1 * parseFloat(getComputedStyle(c).lineHeight) * c.textContent.trim().split(/\s+/).length).map((c) => c.textContent).join(', ')`
	// cutCharts counts the charts with something in their last column of pixels.
	cutCharts = `[...document.querySelectorAll('.u-wrap canvas')].filter((c) => c.getContext('2d').getImageData(c.width - 1, 0, 1, c.height).data.some((v) => v)).length`
)

// TestPageInBrowser goes through every screen in three widths and both themes.
func TestPageInBrowser(t *testing.T) {
	long(t)
	l := newLab(t, 4, 24)
	b := browser.New(t, "http://"+l.port+"/")
	b.As(1600, "light")
	b.Do(chromedp.Navigate("http://" + l.port + "/"))
	b.Await(`document.querySelector('.door')`)
	b.Picture("door-1600-light")
	b.Do(chromedp.Navigate(l.address()))
	for turn := range 4 {
		l.sample(4, 5*turn)
		time.Sleep(1100 * time.Millisecond)
	}
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{360, 1024, 1600} {
			b.As(width, theme)
			for _, p := range pages {
				b.Of(fmt.Sprintf("location.hash = %q", p.hash))
				b.Await(p.there)
				b.Picture(fmt.Sprintf("%s-%d-%s", p.name, width, theme))
				if width != 1024 { // the rules are the same in between
					b.Axe(p.name)
				}
				// A phone's window becomes as wide as the page.
				if wide := b.Of(`document.documentElement.scrollWidth`); wide != fmt.Sprint(width) {
					t.Errorf("%s at %d: it is %s pixels wide", p.name, width, wide)
				}
				if broken := b.Of(brokenChips); broken != "" {
					t.Errorf("%s at %d: broken within a word: %s", p.name, width, broken)
				}
				if cut := b.Of(cutCharts); cut != "0" {
					t.Errorf("%s at %d: %s charts draw up to their right edge: a label is cut there", p.name, width, cut)
				}
			}
		}
	}
	b.Well()
}

// find types into the search field, which the key / selects.
func find(b *browser.Browser, text string) {
	b.Do(chromedp.KeyEvent("/"))
	b.Await(`document.activeElement.type === 'search'`)
	b.Of(`document.activeElement.value = ''`) // without a handler for the event, the browser handles the key itself
	b.Do(chromedp.KeyEvent(text))
}

// TestPageKeys checks the effects of keys and buttons.
func TestPageKeys(t *testing.T) {
	long(t)
	l := newLab(t, 2, 8)
	b := browser.New(t, "http://"+l.port+"/")
	b.As(1024, "light")
	b.Do(chromedp.Navigate(l.address()))
	b.Await(`document.querySelector('.card')`)
	if hash := b.Of(`location.hash`); strings.Contains(hash, "login") {
		t.Errorf("the ticket stays in the address: %s", hash)
	}
	for key, there := range map[string]string{"2": ".page.tasks table", "3": ".page.timeline svg", "4": ".page.users table", "5": ".page.history table", "1": ".page.overview .card"} {
		b.Do(chromedp.KeyEvent(key))
		b.Await(`document.querySelector('` + there + `')`)
	}
	b.Do(chromedp.KeyEvent("?"))
	b.Await(`document.querySelector('dialog[open] kbd')`)
	b.Axe("keys")
	b.Do(chromedp.KeyEvent(kb.Escape))
	b.Await(`!document.querySelector('dialog[open]')`)

	b.Do(chromedp.KeyEvent("2"))
	b.Await(`document.querySelector('.page.tasks tbody tr')`)
	find(b, "dorothea")
	b.Await(`document.querySelectorAll('.tasks tbody tr').length === 1`)
	b.Of(`(() => { const f = document.querySelector('input[type=search]'); f.value = ''; f.dispatchEvent(new Event('input')); f.blur(); })()`)

	// Stop by the keyboard: the button, the question, Cancel first, then yes.
	b.Await(`document.querySelector('[aria-label="Stop task 4, resnet50-bs16-000"]')`)
	b.Of(`document.querySelector('[aria-label="Stop task 4, resnet50-bs16-000"]').focus()`)
	b.Do(chromedp.KeyEvent(kb.Enter))
	b.Await(`document.querySelector('dialog[open]')`)
	b.Axe("question")
	if _, err := l.api.Update(l.ctx(), "4", api.Update{Name: new("renamed")}); err != nil { // its row is drawn again
		t.Fatal(err)
	}
	b.Await(`document.querySelector('[aria-label="Stop task 4, renamed"]')`)
	b.Do(chromedp.KeyEvent(kb.Enter)) // Cancel has the focus
	b.Await(`!document.querySelector('dialog[open]') && document.activeElement.textContent === 'Stop'`)
	if got, _ := l.api.Task(l.ctx(), "4"); got.Phase != "running" {
		t.Errorf("after Cancel it is %s", got.Phase)
	}
	b.Do(chromedp.KeyEvent(kb.Enter))
	b.Await(`document.querySelector('dialog[open]')`)
	b.Do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	l.until("4", "cancelled", func(t api.Task) bool { return t.Finished() })
	b.Await(`!document.querySelector('[aria-label="Stop task 4, renamed"]')`)

	// The history of a task, updated live. A long history is shortened in the middle.
	b.Of(`location.hash = '#/task/5'`)
	b.Await(`document.querySelector('.decisions')?.textContent.includes('its program runs')`)
	var moves []model.Event
	for range 250 {
		moves = append(moves, model.QueueMoved{At: l.Clock.Now(), Task: 5, By: "root"})
	}
	l.happens(moves...)
	b.Await(`document.querySelector('.decisions')?.textContent.includes('in between left out')`)
	b.Of(`document.querySelector('.decisions').focus()`)
	b.Do(chromedp.KeyEvent(kb.End))
	b.Await(`document.querySelector('.decisions').scrollTop > 100`)
	b.Axe("decisions")
	b.Of(`location.hash = '#/tasks'`)

	// One button holds the task, another releases it.
	b.Await(`document.querySelector('[aria-label="Release task 12, held-back"]')`)
	b.Of(`document.querySelector('[aria-label="Release task 12, held-back"]').click()`)
	b.Await(`document.querySelector('dialog[open]')`)
	b.Of(`document.querySelector('dialog .main').click()`)
	b.Await(`!document.querySelector('dialog[open]')`)
	l.until("12", "released", func(t api.Task) bool { return t.Phase != "held" })

	// The timeline by arrow keys, to a task's page. One was suspended meanwhile.
	l.canSuspend()
	l.happens(model.HostsFound{At: l.Clock.Now(), Hosts: []model.HostInfo{{Total: 512 * units.GiB, Memory: 512 * units.GiB}}})
	l.happens(model.SuspendAsked{At: l.Clock.Now(), Task: 5, By: "ada"}, model.SuspendDone{At: l.Clock.Now(), Task: 5, Attempt: 1})
	l.happens(model.ResumeAsked{At: l.Clock.Now(), Task: 5, By: "ada"}, model.Resumed{At: l.Clock.Now(), Task: 5, Attempt: 1})
	b.Do(chromedp.KeyEvent("3"))
	b.Await(`document.querySelector('.run[tabindex="0"]')`)
	b.Await(`document.querySelectorAll('.run[aria-label*="#5)"] .away').length === 1 && document.querySelectorAll('.run .away').length === 1`)
	b.Of(`document.querySelector('.run[tabindex="0"]').focus()`)
	b.Do(chromedp.KeyEvent(kb.ArrowRight))
	b.Await(`document.querySelector('.told').textContent.includes('on GPU')`)
	b.Do(chromedp.KeyEvent(kb.Enter))
	b.Await(`document.querySelector('.page.task h1')`)

	// History finds by a part of a name.
	b.Do(chromedp.KeyEvent("5"))
	b.Await(`document.querySelector('.history tbody tr')`)
	find(b, "unet")
	b.Do(chromedp.KeyEvent(kb.Enter))
	b.Await(`document.querySelectorAll('.history tbody tr').length === 2`)

	// The button changes the theme. After the sign-out nothing is left.
	b.Of(`document.getElementById('theme').click()`)
	b.Of(`document.getElementById('theme').click()`)
	b.Await(`document.documentElement.dataset.theme === 'dark'`)
	b.Of(`document.getElementById('leave').click()`)
	b.Await(`document.querySelector('.door')`)
	b.Axe("door")
	b.Do(chromedp.Reload())
	b.Await(`document.querySelector('.door') && !localStorage.getItem('carma-key')`)
	b.Well()
}

// TestPageFirstPaint checks that with 16 GPUs and 500 tasks the overview is shown within a
// second. Time limits apply only to builds without the race detector.
func TestPageFirstPaint(t *testing.T) {
	long(t)
	l := newLab(t, 16, 500)
	b := browser.New(t, "http://"+l.port+"/")
	b.As(1600, "light")
	b.Do(chromedp.Navigate(l.address()))
	b.Await(`document.querySelectorAll('.card').length === 16`)
	bytes := b.Of(`performance.getEntriesByType('resource').filter((r) => /[.](js|css|svg)$/.test(r.name)).reduce((n, r) => n + r.decodedBodySize, performance.getEntriesByType('navigation')[0].decodedBodySize)`)
	b.Do(chromedp.Reload())
	b.Await(`document.querySelectorAll('.card').length === 16`)
	paint := b.Painted()
	cards := b.Of(`performance.getEntriesByName('carma-first')[0].startTime`)
	t.Logf("first paint after %s ms, the GPUs after %s ms; the files have %s bytes", paint, cards, bytes)
	for _, ms := range []string{paint, cards} {
		if v, err := strconv.ParseFloat(ms, 64); err != nil || v > 1000 && !raceDetector {
			t.Errorf("after %s ms (%v)", ms, err)
		}
	}
	if n, err := strconv.Atoi(bytes); err != nil || n > 300_000 || n < 50_000 {
		t.Errorf("%s bytes", bytes)
	}
	b.Of(`location.hash = '#/tasks'`)
	b.Await(`document.querySelectorAll('.tasks tbody tr').length > 495`)
	b.Picture("many-tasks")
	b.Well()
}
