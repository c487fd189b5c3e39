package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"carma/test/browser"
)

// aLoad returns a load whose name is HTML markup.
func aLoad() Load {
	return Load{
		Name: "a <b>log</b>", Facts: []string{"Philly log", "x & y"},
		Gaps: []time.Duration{0, time.Second, 90 * time.Second}, RunTimes: []time.Duration{time.Minute, 30 * time.Hour},
		GPUs: []Share{{"1", 3}, {"8", 1}}, Classes: []Share{{"light", 4}}, Bin: time.Minute, Demand: []float64{0.5, 12, 3}, Arrivals: []int{2, 0, 1},
	}
}

func writtenLoad(t *testing.T, l Load) string {
	t.Helper()
	var b strings.Builder
	if err := WriteLoad(&b, l); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWriteLoad(t *testing.T) {
	page := writtenLoad(t, aLoad())
	if page != writtenLoad(t, aLoad()) {
		t.Error("equal data, other bytes")
	}
	text := checked(t, page)
	for _, want := range []string{"<h1>a &lt;b&gt;log&lt;/b&gt;</h1>", "Philly log · x &amp; y", "75.0 %", "25.0 %", "width: 33.3%", "100.0 %", "<h2>GPUs per task</h2>"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	for _, not := range []string{"<b>", "http:", "https:", "How tasks ended"} {
		if strings.Contains(text, not) {
			t.Errorf("there is %s", not)
		}
	}
	var d loadData
	if err := json.Unmarshal([]byte(regexp.MustCompile(`(?s)id="data">(.*?)</script>`).FindStringSubmatch(page)[1]), &d); err != nil {
		t.Fatal(err)
	}
	if d.Bin != 60 || !slices.Equal(d.Demand, []float64{0.5, 12, 3}) || !slices.Equal(d.Arrivals, []int{2, 0, 1}) || !slices.Equal(d.Gaps, []float64{0, 1, 90}) || !slices.Equal(d.RunTimes, []float64{60, 108000}) {
		t.Errorf("%+v", d)
	}
}

// TestReportOfLoad checks the page of a load, also of an empty one.
func TestReportOfLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about a second or more")
	}
	folder := t.TempDir()
	for name, l := range map[string]Load{"load": aLoad(), "none": {Name: "none", Bin: time.Second, Demand: []float64{0}, Arrivals: []int{0}}} {
		if err := os.WriteFile(filepath.Join(folder, name+".html"), []byte(writtenLoad(t, l)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address := "file://" + folder
	b := browser.New(t, address)
	const drawn = `document.querySelectorAll('.plot .u-over').length === 4`
	for _, c := range []struct {
		width int64
		theme string
	}{{360, "dark"}, {1200, "light"}} {
		b.As(c.width, c.theme)
		b.Do(chromedp.Navigate(address + "/load.html"))
		b.Of(`[...document.querySelectorAll('.plot')].forEach((p) => p.plot.draw())`)
		b.Await(drawn)
		b.Picture("load-" + c.theme)
		b.Axe("load")
		if wide := b.Of(`document.documentElement.scrollWidth > innerWidth`); wide != "false" {
			t.Errorf("at %d it is too wide: %s", c.width, b.Of(tooWide))
		}
	}
	// The ticks of a distribution are round times; the legend shows the share at the
	// cursor.
	if got := b.Of(`(() => { const u = document.querySelectorAll('.plot')[3].plot.u; return u.axes[0]._values.join(); })()`); got != "1 s,10 s,2 min,30 min,6 h" {
		t.Errorf("ticks %s", got)
	}
	if got := b.Of(`(() => { const u = document.querySelectorAll('.plot')[2].plot.u; u.setCursor({left: u.valToPos(Math.log10(30), 'x'), top: 9}, true, true); return document.querySelectorAll('.plot')[2].textContent; })()`); !strings.Contains(got, "66.7 %") || !strings.Contains(got, "30s") {
		t.Errorf("%s", got)
	}
	// Both charts over time are zoomed together.
	b.Of(`document.querySelector('.plot').focus()`)
	b.Do(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent("+"))
	b.Await(`(() => { const [a, b] = [...document.querySelectorAll('.plot')].map((p) => p.plot.u.scales.x); return a.max - a.min < 180 && a.max === b.max && a.min === b.min; })()`)
	b.Do(chromedp.Navigate(address + "/none.html"))
	b.Await(drawn)
	b.Well()
}
