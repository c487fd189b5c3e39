package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"carma/test/browser"
)

// opened returns a report on the data as a file in a browser.
func opened(t *testing.T, all ...Data) (b *browser.Browser, address string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(written(t, all...)), 0o600); err != nil {
		t.Fatal(err)
	}
	b = browser.New(t, "file://"+file)
	return b, "file://" + file
}

// ready: the charts that are in view are drawn.
const ready = `document.querySelectorAll('.plot .u-over').length > 2 && performance.getEntriesByName('carma-drawn').length`

// hostile returns data with names that would run as programs if they were interpreted as
// HTML.
func hostile(t *testing.T, policies ...string) Data {
	d := simulated(t, 60, 3, policies...)
	const script = `</script><script>document.title='taken'</script><img src=x onerror="document.title='taken'">`
	d.Description = script
	for i := range d.Runs {
		d.Runs[i].Tasks[3].Name = script
	}
	d.Runs[0].Tasks[0].Kind = script
	return d
}

// TestReportInBrowser looks at a report in three widths and both themes.
func TestReportInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about a second or more")
	}
	b, address := opened(t, hostile(t, "exclusive", "magm"), simulated(t, 12, 1, "magm"))
	b.As(1600, "light")
	b.Do(chromedp.Navigate(address))
	b.Await(ready) // charts are drawn as they come into view: on a telephone fewer
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{360, 1024, 1600} {
			b.As(width, theme)
			b.Await(ready)
			b.Of(`[...document.querySelectorAll('.plot')].forEach((p) => p.plot.draw())`)
			b.Picture(fmt.Sprintf("report-%d-%s", width, theme))
			if width != 1024 { // the rules are the same in between
				b.Axe("report")
			}
			if wide := b.Of(`document.documentElement.scrollWidth`); wide != fmt.Sprint(width) {
				t.Errorf("at %d it is %s pixels wide: %s", width, wide, b.Of(tooWide))
			}
		}
	}
	b.Well()
}

// tooWide returns the elements that exceed the right edge.
const tooWide = `[...document.querySelectorAll('main *')].filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth).slice(0, 5).map((e) => e.outerHTML.slice(0, 120)).join(' | ')`

// TestReportKeys checks the effects of mouse and keys.
func TestReportKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about a second or more")
	}
	b, address := opened(t, hostile(t, "exclusive", "magm", "carma"))
	b.As(1200, "light")
	b.Do(chromedp.Navigate(address))
	b.Await(ready)
	b.Of(`[...document.querySelectorAll('.plot')].forEach((p) => p.plot.draw())`)
	const view = `[...document.querySelectorAll('.run .plot')].filter((p) => p.plot.u).map((p) => p.plot.u.scales.x.min.toFixed(0) + '-' + p.plot.u.scales.x.max.toFixed(0)).filter((v, i, all) => all.indexOf(v) === i).join()`
	whole := b.Of(view)
	if strings.Contains(whole, ",") {
		t.Fatalf("not all charts show the same time: %s", whole)
	}
	focus := func(n int) { b.Of(fmt.Sprintf(`document.querySelectorAll('.run .plot')[%d].focus()`, n)) }

	// A curve is drawn to its end.
	if got := b.Of(`(() => { const u = [...document.querySelectorAll('.run .plot')].find((p) => p.textContent.startsWith('GPU 0')).plot.u, n = u.data[0].length - 1; return [u.data[0][n] - u.scales.x.max, u.data[3][n]].join(); })()`); got != "0,40" {
		t.Errorf("the last point of the capacity is %s", got)
	}
	// A cursor in one chart is shown in all charts, and its values are announced.
	focus(0)
	b.Do(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight))
	b.Await(`document.querySelector('.run .plot .told').textContent.startsWith('at ')`)
	if n := b.Of(`new Set([...document.querySelectorAll('.run .plot')].filter((p) => p.plot.u).map((p) => Math.round(p.plot.u.cursor.left / p.plot.u.over.clientWidth * 50))).size`); n != "1" {
		t.Errorf("the cursor is at %s places", n)
	}
	// The legends show that time, and the values at it.
	wrong := b.Of(`(() => {
		const u = [...document.querySelectorAll('.run .plot')].find((p) => p.textContent.startsWith('GPU 0')).plot.u, wrong = [], width = u.over.clientWidth;
		for (let left = 1; left < width; left += 3) {
			u.setCursor({left, top: 9}, true, true);
			const at = u.posToVal(left, 'x'), holds = u.data[1][u.data[0].findLastIndex((x) => x <= at)];
			if (u.series[1].value(u, u.data[1][u.cursor.idxs[1]]) !== u.series[1].value(u, holds)) wrong.push(at);
		}
		return wrong.length;
	})()`)
	if wrong != "0" {
		t.Errorf("at %s places the legend tells of another time", wrong)
	}
	b.Of(`[...document.querySelectorAll('.run .plot')].find((p) => p.textContent.startsWith('GPU 0')).focus()`)
	b.Do(chromedp.KeyEvent(kb.ArrowLeft))
	b.Await(`/^at .*, used .* GiB, booked .* GiB, capacity 40 GiB$/.test(document.activeElement.plot.words.textContent)`)
	focus(0)
	// After a zoom by keys, all charts over time show the same interval, and the URL contains it.
	b.Do(chromedp.KeyEvent("+"), chromedp.KeyEvent("+"))
	near := b.Of(view)
	if near == whole || strings.Contains(near, ",") || !strings.Contains(b.Of(`location.hash`), "from=") {
		t.Errorf("zoomed: %s, address %s", near, b.Of(`location.hash`))
	}
	b.Do(chromedp.KeyEvent("0"))
	if got := b.Of(view); got != whole {
		t.Errorf("back: %s, not %s", got, whole)
	}
	// A drag zooms in, and a double click zooms out.
	b.Of(`document.querySelector('.run .plot').scrollIntoView({block: 'center'})`)
	b.Of(dragged)
	b.Await(`location.hash.includes('from=')`)
	if got := b.Of(view); got == whole || strings.Contains(got, ",") {
		t.Errorf("dragged: %s", got)
	}
	b.Of(`document.querySelector('.run .u-over').dispatchEvent(new MouseEvent('dblclick', {bubbles: true}))`)
	b.Await(`!location.hash.includes('from=')`)

	// The keys move from attempt to attempt, and show the task under all policies.
	focus(0)
	b.Do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown))
	b.Await(`/^task \d+: .* GPU \d/.test(document.querySelector('.run .plot .told').textContent)`)
	b.Do(chromedp.KeyEvent(kb.Enter))
	b.Await(`document.querySelectorAll('.chosen tbody tr').length === 3 && location.hash.includes('task=')`)
	b.Axe("task")

	// Filtered and sorted.
	b.Of(`document.activeElement.blur()`)
	b.Do(chromedp.KeyEvent("/"))
	b.Await(`document.activeElement.type === 'search'`)
	b.Of(`document.activeElement.value = ''`) // a browser that sends no event handles the key itself
	b.Do(chromedp.KeyEvent("task-17"))
	b.Await(`document.querySelectorAll('[data-tasks] > .scroll tbody tr').length === 1`)
	b.Of(`(() => { const f = document.querySelector('input[type=search]'); f.value = ''; f.dispatchEvent(new Event('input')); })()`)
	b.Of(`[...document.querySelectorAll('.tasks th button')].find((x) => x.textContent === 'JCT').click()`)
	b.Of(`[...document.querySelectorAll('.tasks th button')].find((x) => x.textContent === 'JCT').click()`)
	b.Await(`document.querySelector('.tasks th[aria-sort=descending] button').textContent === 'JCT'`)

	// Folded sections, runs beside each other, another theme, keys, and a shared URL.
	b.Of(`[...document.querySelectorAll('.controls button')].find((x) => x.textContent === 'Side by side').click()`)
	b.Await(`document.documentElement.scrollWidth === 1200`)
	b.Picture("report-beside")
	b.Of(`[...document.querySelectorAll('.controls button')].find((x) => x.textContent === 'Fold all').click()`)
	b.Await(`!document.querySelector('details[open]')`)
	b.Of(`document.activeElement.blur()`)
	b.Do(chromedp.KeyEvent("?"))
	b.Await(`document.querySelector('dialog[open]')`)
	b.Axe("keys")
	b.Do(chromedp.KeyEvent(kb.Escape))
	b.Of(`(document.getElementById('theme').click(), document.getElementById('theme').click())`)
	b.Await(`document.documentElement.dataset.theme === 'dark'`)
	b.Do(chromedp.Navigate("about:blank"), chromedp.Navigate(address+"#t1?from=600&to=1200&task=5&policy=carma&filter=task-5"))
	b.Await(`document.querySelector('.chosen h3').textContent.startsWith('Task 5:') && document.querySelector('select').value === 'carma' && document.querySelector('input').value === 'task-5'`)
	b.Of(`document.querySelector('.run').scrollIntoView()`)
	b.Paper("report-paper")
	b.Await(`document.querySelector('.run .plot').plot.u && Math.round(document.querySelector('.run .plot').plot.u.scales.x.min) === 600`)
	b.Well()
}

// TestReportOfMany: with too many tasks to list, the other charts are there.
func TestReportOfMany(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about a second or more")
	}
	defer func(n int) { shownTasks = n }(shownTasks)
	shownTasks = 10
	b, address := opened(t, simulated(t, 60, 2, "exclusive", "magm"))
	b.As(1024, "light")
	b.Do(chromedp.Navigate(address))
	b.Await(ready)
	b.Await(`document.querySelector('.tasks').textContent.includes('--csv') && document.querySelector('.run').textContent.includes('--chrome-trace')`)
	b.Well()
}

// dragged draws the mouse over a part of the first chart of time.
const dragged = `(() => {
  const over = document.querySelector('.run .u-over'), box = over.getBoundingClientRect();
  const send = (to, kind, x) => to.dispatchEvent(new MouseEvent(kind, {bubbles: true, view: window, button: 0, clientX: box.left + x, clientY: box.top + 20, movementX: 30}));
  send(over, 'mouseenter', 100); send(over, 'mousemove', 100); send(over, 'mousedown', 100);
  send(over, 'mousemove', 200); send(over, 'mousemove', 300); send(document, 'mouseup', 300);
})()`

// TestReportSize checks the size of a report, and the time until it is shown. Time limits apply
// only to builds without the race detector.
func TestReportSize(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about a second or more")
	}
	for _, c := range []struct {
		tasks, bytes int
		policies     []string
	}{{60, 250_000, []string{"exclusive", "magm", "carma"}}, {3000, 1_600_000, []string{"exclusive", "round-robin", "magm", "carma"}}} {
		if raceDetector && c.tasks > 1000 { // it takes some ten times as long
			c.tasks, c.bytes = c.tasks/3, c.bytes/2
		}
		d := simulated(t, c.tasks, 4, c.policies...)
		size := len(written(t, d))
		b, address := opened(t, d)
		b.As(1600, "light")
		b.Do(chromedp.Navigate(address))
		b.Await(ready)
		paint := b.Painted()
		drawn := b.Of(`performance.getEntriesByName('carma-drawn')[0].startTime`)
		b.Of(`[...document.querySelectorAll('.plot')].forEach((p) => p.plot.draw())`)
		b.Picture(fmt.Sprintf("report-%d-tasks", c.tasks))
		zoom := b.Of(`(() => { const begun = performance.now(); document.querySelector('.run .plot').focus(); document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: '+', bubbles: true})); return performance.now() - begun; })()`)
		t.Logf("%d tasks, %d policies: %d bytes, first paint after %s ms, ready after %s ms; a zoom of all %s charts takes %s ms", c.tasks, len(c.policies), size, paint, drawn, b.Of(`document.querySelectorAll('.plot .u-over').length`), zoom)
		if size > c.bytes {
			t.Errorf("%d bytes for %d tasks", size, c.tasks)
		}
		for _, ms := range []string{paint, drawn} {
			if v, err := strconv.ParseFloat(ms, 64); err != nil || v > 2000 && !raceDetector {
				t.Errorf("after %s ms (%v)", ms, err)
			}
		}
		b.Well()
	}
}
