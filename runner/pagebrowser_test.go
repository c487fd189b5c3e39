package runner

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"carma/mapper"
	"carma/mapper/units"
	"carma/runner/api"
)

// browser is Chromium with what it has complained about.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	messages []string
	foreign  []string // requests that went elsewhere
}

// findChromium returns the path of Chromium. Without one the test is left out, but
// never in CI.
func findChromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("no Chromium: apt-get install chromium")
	}
	t.Skip("left out: no Chromium; apt-get install chromium")
	return ""
}

func newBrowser(t *testing.T, host string) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(findChromium(t)), chromedp.NoSandbox, chromedp.Flag("lang", "en-GB"),
		chromedp.UserDataDir(t.TempDir()))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx}
	err := chromedp.Listen(ctx, func(ev any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch ev := ev.(type) {
		case *cdpruntime.EventConsoleAPICalled:
			b.messages = append(b.messages, fmt.Sprintf("console %s: %s", ev.Type, ev.Args[0].Value))
		case *cdpruntime.EventExceptionThrown:
			b.messages = append(b.messages, "exception: "+ev.ExceptionDetails.Text)
		case *cdplog.EventEntryAdded:
			b.messages = append(b.messages, fmt.Sprintf("log %s: %s %s", ev.Entry.Level, ev.Entry.Text, ev.Entry.URL))
		case *network.EventRequestWillBeSent:
			if !strings.HasPrefix(ev.Request.URL, "http://"+host+"/") {
				b.foreign = append(b.foreign, ev.Request.URL)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	command(b, network.Enable, network.EnableParams{})
	command(b, cdplog.Enable, cdp.Empty{})
	command(b, cdpruntime.Enable, cdp.Empty{})
	return b
}

// command runs a command of the protocol.
func command[P, R any](b *browser, c cdp.Command[P, R], params P) R {
	b.t.Helper()
	answer, err := chromedp.Call(b.ctx, c, params)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// of returns the value of an expression, as text.
func (b *browser) of(expression string) string {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("String("+expression+")"))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return text
}

// await waits until an expression is true.
func (b *browser) await(what string) {
	b.t.Helper()
	for until := time.Now().Add(stepTimeout); b.of("!!("+what+")") != "true"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			b.t.Fatalf("it is not so that %s; the page says: %s; messages: %q", what, b.of("document.body.innerText"), b.messages)
		}
	}
}

// as shows the page in a width and a theme.
func (b *browser) as(width int64, theme string) {
	b.t.Helper()
	command(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 900, DeviceScaleFactor: 1, Mobile: width < 700})
	command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
}

// picture writes a screenshot below CARMA_PICTURES, if that is set.
func (b *browser) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("CARMA_PICTURES")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// pages are all screens, with what shows that they are there.
var pages = []struct{ name, hash, there string }{
	{"overview", "#/", `document.querySelectorAll('.card .part').length > 4`},
	{"tasks", "#/tasks", `document.querySelectorAll('.tasks tbody tr').length > 9`},
	{"task", "#/task/4", `document.querySelector('.log div') && document.querySelector('.u-wrap canvas')`},
	{"waiting", "#/task/20", `document.querySelector('.task details li')`},
	{"timeline", "#/timeline", `document.querySelector('.run .bar')`},
	{"users", "#/users", `document.querySelectorAll('.users tbody tr').length > 4`},
	{"history", "#/history", `document.querySelectorAll('.history tbody tr').length > 9`},
}

// TestPageInBrowser goes through every screen in three widths and both themes.
func TestPageInBrowser(t *testing.T) {
	l := newLab(t, 4, 24)
	b := newBrowser(t, l.port)
	b.as(1600, "light")
	b.do(chromedp.Navigate("http://" + l.port + "/"))
	b.await(`document.querySelector('.door')`)
	b.picture("door-1600-light")
	b.do(chromedp.Navigate(l.address()))
	for turn := range 4 {
		l.sample(4, 5*turn)
		time.Sleep(1100 * time.Millisecond)
	}
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{360, 1024, 1600} {
			b.as(width, theme)
			for _, p := range pages {
				b.of(fmt.Sprintf("location.hash = %q", p.hash))
				b.await(p.there)
				b.picture(fmt.Sprintf("%s-%d-%s", p.name, width, theme))
				if width != 1024 { // the rules are the same in between
					b.axe(p.name)
				}
				if wide := b.of(`document.documentElement.scrollWidth - innerWidth`); wide != "0" {
					t.Errorf("%s at %d: %s pixels too wide", p.name, width, wide)
				}
			}
		}
	}
	b.well()
}

// axe checks the page as it is for those who cannot see it, or use no mouse.
func (b *browser) axe(name string) {
	b.t.Helper()
	if b.of(`typeof axe`) == "undefined" {
		cache, _ := os.UserCacheDir()
		text, err := os.ReadFile(filepath.Join(cache, "carma", "axe", "axe.min.js"))
		if err != nil && os.Getenv("CI") == "true" {
			b.t.Fatal(err)
		} else if err != nil {
			b.t.Log("axe is left out: test/setup/axe.sh fetches it")
			return
		}
		b.of("(() => {" + string(text) + "})()")
	}
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`axe.run({resultTypes: ['violations']}).then((r) => (r.passes.length > 5 ? '' : 'it has looked at next to nothing') + r.violations.map((v) => v.id + ': ' + v.help + ' ' + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200)).join(' | ')).join('\n'))`, chromedp.EvalAwaitPromise))
	if err != nil || found != "" {
		b.t.Errorf("%s: axe: %v %s", name, err, found)
	}
}

// find types into the field that the key / goes to.
func (b *browser) find(text string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent("/"))
	b.await(`document.activeElement.type === 'search'`)
	b.of(`document.activeElement.value = ''`) // a browser that is not told by events swallows the key itself
	b.do(chromedp.KeyEvent(text))
}

// TestPageKeys goes through what keys and buttons do.
func TestPageKeys(t *testing.T) {
	l := newLab(t, 2, 8)
	b := newBrowser(t, l.port)
	b.as(1024, "light")
	b.do(chromedp.Navigate(l.address()))
	b.await(`document.querySelector('.card')`)
	if hash := b.of(`location.hash`); strings.Contains(hash, "login") {
		t.Errorf("the ticket stays in the address: %s", hash)
	}
	for key, there := range map[string]string{"2": ".page.tasks table", "3": ".page.timeline svg", "4": ".page.users table", "5": ".page.history table", "1": ".page.overview .card"} {
		b.do(chromedp.KeyEvent(key))
		b.await(`document.querySelector('` + there + `')`)
	}
	b.do(chromedp.KeyEvent("?"))
	b.await(`document.querySelector('dialog[open] kbd')`)
	b.axe("keys")
	b.do(chromedp.KeyEvent(kb.Escape))
	b.await(`!document.querySelector('dialog[open]')`)

	b.do(chromedp.KeyEvent("2"))
	b.await(`document.querySelector('.page.tasks tbody tr')`)
	b.find("dorothea")
	b.await(`document.querySelectorAll('.tasks tbody tr').length === 1`)
	b.of(`(() => { const f = document.querySelector('input[type=search]'); f.value = ''; f.dispatchEvent(new Event('input')); f.blur(); })()`)

	// Stop by the keyboard: the button, the question, Cancel first, then yes.
	b.await(`document.querySelector('[aria-label="Stop task 4, resnet50-bs16-000"]')`)
	b.of(`document.querySelector('[aria-label="Stop task 4, resnet50-bs16-000"]').focus()`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await(`document.querySelector('dialog[open]')`)
	b.axe("question")
	b.do(chromedp.KeyEvent(kb.Enter)) // Cancel has the focus
	b.await(`!document.querySelector('dialog[open]') && document.activeElement.textContent === 'Stop'`)
	if got, _ := l.api.Task(l.ctx(), "4"); got.Phase != "running" {
		t.Errorf("after Cancel it is %s", got.Phase)
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await(`document.querySelector('dialog[open]')`)
	b.do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	l.until("4", "cancelled", func(t api.Task) bool { return t.Finished() })
	b.await(`!document.querySelector('[aria-label="Stop task 4, resnet50-bs16-000"]')`)

	// Held by one, released by another button.
	b.await(`document.querySelector('[aria-label="Release task 12, held-back"]')`)
	b.of(`document.querySelector('[aria-label="Release task 12, held-back"]').click()`)
	b.await(`document.querySelector('dialog[open]')`)
	b.of(`document.querySelector('dialog .main').click()`)
	b.await(`!document.querySelector('dialog[open]')`)
	l.until("12", "released", func(t api.Task) bool { return t.Phase != "held" })

	// The timeline by arrow keys, to a task's page. One was suspended meanwhile.
	l.canSuspend()
	l.happens(mapper.HostsFound{At: l.Clock.Now(), Hosts: []mapper.HostInfo{{Total: 512 * units.GiB, Memory: 512 * units.GiB}}})
	l.happens(mapper.SuspendAsked{At: l.Clock.Now(), Task: 5, By: "ada"}, mapper.Suspended{At: l.Clock.Now(), Task: 5, Attempt: 1})
	l.happens(mapper.ResumeAsked{At: l.Clock.Now(), Task: 5, By: "ada"}, mapper.Resumed{At: l.Clock.Now(), Task: 5, Attempt: 1})
	b.do(chromedp.KeyEvent("3"))
	b.await(`document.querySelector('.run[tabindex="0"]')`)
	b.await(`document.querySelectorAll('.run[aria-label*="#5)"] .away').length === 1 && document.querySelectorAll('.run .away').length === 1`)
	b.of(`document.querySelector('.run[tabindex="0"]').focus()`)
	b.do(chromedp.KeyEvent(kb.ArrowRight))
	b.await(`document.querySelector('.told').textContent.includes('on GPU')`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await(`document.querySelector('.page.task h1')`)

	// History finds by a part of a name.
	b.do(chromedp.KeyEvent("5"))
	b.await(`document.querySelector('.history tbody tr')`)
	b.find("unet")
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await(`document.querySelectorAll('.history tbody tr').length === 2`)

	// Themes by the button; out, and nothing is left.
	b.of(`document.getElementById('theme').click()`)
	b.of(`document.getElementById('theme').click()`)
	b.await(`document.documentElement.dataset.theme === 'dark'`)
	b.of(`document.getElementById('leave').click()`)
	b.await(`document.querySelector('.door')`)
	b.axe("door")
	b.do(chromedp.Reload())
	b.await(`document.querySelector('.door') && !localStorage.getItem('carma-key')`)
	b.well()
}

// TestPageFirstPaint: with 16 GPUs and 500 tasks the overview is there within a second.
// Bounds of time are for builds without the race detector.
func TestPageFirstPaint(t *testing.T) {
	l := newLab(t, 16, 500)
	b := newBrowser(t, l.port)
	b.as(1600, "light")
	b.do(chromedp.Navigate(l.address()))
	b.await(`document.querySelectorAll('.card').length === 16`)
	bytes := b.of(`performance.getEntriesByType('resource').filter((r) => /[.](js|css|svg)$/.test(r.name)).reduce((n, r) => n + r.decodedBodySize, performance.getEntriesByType('navigation')[0].decodedBodySize)`)
	b.do(chromedp.Reload())
	b.await(`document.querySelectorAll('.card').length === 16`)
	paint := b.of(`performance.getEntriesByType('paint').find((p) => p.name === 'first-contentful-paint').startTime`)
	cards := b.of(`performance.getEntriesByName('carma-first')[0].startTime`)
	t.Logf("first paint after %s ms, the GPUs after %s ms; the files have %s bytes", paint, cards, bytes)
	for _, ms := range []string{paint, cards} {
		if v, err := strconv.ParseFloat(ms, 64); err != nil || v > 1000 && !raceDetector {
			t.Errorf("after %s ms (%v)", ms, err)
		}
	}
	if n, err := strconv.Atoi(bytes); err != nil || n > 300_000 || n < 50_000 {
		t.Errorf("%s bytes", bytes)
	}
	b.of(`location.hash = '#/tasks'`)
	b.await(`document.querySelectorAll('.tasks tbody tr').length > 495`)
	b.picture("many-tasks")
	b.well()
}

// well checks that the browser had nothing to complain about.
func (b *browser) well() {
	b.t.Helper()
	if title := b.of(`document.title`); strings.Contains(title, "taken") {
		b.t.Error("a text was run as a program")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.messages {
		b.t.Errorf("the browser says: %s", m)
	}
	for _, url := range b.foreign {
		b.t.Errorf("the page asked elsewhere: %s", url)
	}
}
