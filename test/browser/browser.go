// Package browser is Chromium for tests of pages: it reports the browser's errors and requests,
// checks pages with axe, and takes pictures.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
)

// Browser is Chromium with its recorded complaints.
type Browser struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex
	messages []string
	foreign  []string // requests that went elsewhere
}

// stepTimeout is the time that Await waits: other tests have the processors too.
const stepTimeout = 20 * time.Second

// Find returns the path of Chromium. Without one the test is left out, but
// never in CI.
func Find(t testing.TB) string {
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

// New starts a browser. All its requests must begin with own; Well reports others.
func New(t testing.TB, own string) *Browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(Find(t)), chromedp.NoSandbox, chromedp.Flag("lang", "en-GB"),
		chromedp.UserDataDir(t.TempDir()))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &Browser{t: t, ctx: ctx}
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
			if !strings.HasPrefix(ev.Request.URL, own) && !strings.HasPrefix(ev.Request.URL, "data:") {
				b.foreign = append(b.foreign, ev.Request.URL)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	Command(b, network.Enable, network.EnableParams{})
	Command(b, cdplog.Enable, cdp.Empty{})
	Command(b, cdpruntime.Enable, cdp.Empty{})
	return b
}

// Command runs a command of the protocol.
func Command[P, R any](b *Browser, c cdp.Command[P, R], params P) R {
	b.t.Helper()
	answer, err := chromedp.Call(b.ctx, c, params)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer
}

// Do carries out actions of chromedp.
func (b *Browser) Do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// Of returns the value of an expression, as text.
func (b *Browser) Of(expression string) string {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("String("+expression+")"))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return text
}

// Await waits until an expression is true.
func (b *Browser) Await(what string) {
	b.t.Helper()
	for until := time.Now().Add(stepTimeout); b.Of("!!("+what+")") != "true"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			b.t.Fatalf("it is not so that %s; the page says: %s; messages: %q", what, b.Of("document.body.innerText"), b.messages)
		}
	}
}

// Painted waits for the first paint of something, which may come after scripts have run,
// and returns when it was, in milliseconds.
func (b *Browser) Painted() string {
	b.t.Helper()
	const paint = `performance.getEntriesByName('first-contentful-paint')[0]`
	b.Await(paint)
	return b.Of(paint + `.startTime`)
}

// As shows the page in a width and a theme.
func (b *Browser) As(width int64, theme string) {
	b.t.Helper()
	Command(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 900, DeviceScaleFactor: 1, Mobile: width < 700})
	Command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
}

// Picture writes a screenshot below CARMA_PICTURES, if that is set.
func (b *Browser) Picture(name string) {
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

// Paper prints the page to a PDF. It stores the PDF below CARMA_PICTURES, if that is set.
func (b *Browser) Paper(name string) {
	b.t.Helper()
	pdf, err := chromedp.Run(b.ctx, chromedp.PrintToPDF())
	if err != nil || len(pdf) < 10_000 {
		b.t.Fatalf("printed: %d bytes, %v", len(pdf), err)
	}
	if dir := os.Getenv("CARMA_PICTURES"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".pdf"), pdf, 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
}

// Axe checks the page for users who cannot see it, or use no mouse.
func (b *Browser) Axe(name string) {
	b.t.Helper()
	if b.Of(`typeof axe`) == "undefined" {
		cache, _ := os.UserCacheDir()
		text, err := os.ReadFile(filepath.Join(cache, "carma", "axe", "axe.min.js"))
		if err != nil && os.Getenv("CI") == "true" {
			b.t.Fatal(err)
		} else if err != nil {
			b.t.Log("axe is left out: test/setup/axe.sh fetches it")
			return
		}
		b.Of("(() => {" + string(text) + "})()")
	}
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`axe.run({resultTypes: ['violations'], preload: false}).then((r) => (r.passes.length > 5 ? '' : 'it has looked at next to nothing') + r.violations.map((v) => v.id + ': ' + v.help + ' ' + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200)).join(' | ')).join('\n'))`, chromedp.EvalAwaitPromise))
	if err != nil || found != "" {
		b.t.Errorf("%s: axe: %v %s", name, err, found)
	}
}

// Well checks that the browser had nothing to complain about.
func (b *Browser) Well() {
	b.t.Helper()
	if title := b.Of(`document.title`); strings.Contains(title, "taken") {
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
