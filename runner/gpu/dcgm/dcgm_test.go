package dcgm

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

const (
	gpu0 = "GPU-cccfc25d-fc66-0d40-e289-3b1a1f5d7896"
	gpu1 = "GPU-b850f46d-d5ea-c752-ddf3-c4453e44d3f7"
)

// page is a page as a dcgm-exporter writes it: a card, and a card with MIG.
const page = `# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).
# TYPE DCGM_FI_DEV_SM_CLOCK gauge
DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-cccfc25d-fc66-0d40-e289-3b1a1f5d7896",pci_bus_id="00000000:07:00.0",device="nvidia0",modelName="NVIDIA A100-SXM4-40GB",Hostname="dgx",DCGM_FI_DRIVER_VERSION="535.129.03"} 1410
# HELP DCGM_FI_PROF_SM_ACTIVE The ratio of cycles an SM has at least 1 warp assigned (in %).
# TYPE DCGM_FI_PROF_SM_ACTIVE gauge
DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="GPU-cccfc25d-fc66-0d40-e289-3b1a1f5d7896",pci_bus_id="00000000:07:00.0",device="nvidia0",modelName="NVIDIA A100-SXM4-40GB",Hostname="dgx",DCGM_FI_DRIVER_VERSION="535.129.03"} 0.713540
DCGM_FI_PROF_SM_ACTIVE{gpu="1",UUID="GPU-b850f46d-d5ea-c752-ddf3-c4453e44d3f7",pci_bus_id="00000000:0F:00.0",device="nvidia1",modelName="NVIDIA A100-SXM4-40GB",GPU_I_PROFILE="3g.20gb",GPU_I_ID="1",Hostname="dgx",DCGM_FI_DRIVER_VERSION="535.129.03"} 0.250000
DCGM_FI_PROF_SM_ACTIVE{gpu="1",UUID="GPU-b850f46d-d5ea-c752-ddf3-c4453e44d3f7",pci_bus_id="00000000:0F:00.0",device="nvidia1",modelName="NVIDIA A100-SXM4-40GB",GPU_I_PROFILE="3g.20gb",GPU_I_ID="2",Hostname="dgx",DCGM_FI_DRIVER_VERSION="535.129.03"} 0.500000
# HELP DCGM_FI_PROF_SM_OCCUPANCY The ratio of number of warps resident on an SM (in %).
# TYPE DCGM_FI_PROF_SM_OCCUPANCY gauge
DCGM_FI_PROF_SM_OCCUPANCY{gpu="0",UUID="GPU-cccfc25d-fc66-0d40-e289-3b1a1f5d7896",pci_bus_id="00000000:07:00.0",device="nvidia0",modelName="NVIDIA A100-SXM4-40GB",Hostname="dgx",DCGM_FI_DRIVER_VERSION="535.129.03"} 0.312
# HELP DCGM_FI_PROF_DRAM_ACTIVE Ratio of cycles the device memory interface is active sending or receiving data (in %).
# TYPE DCGM_FI_PROF_DRAM_ACTIVE gauge
DCGM_FI_PROF_DRAM_ACTIVE{gpu="0",UUID="GPU-cccfc25d-fc66-0d40-e289-3b1a1f5d7896",pci_bus_id="00000000:07:00.0",device="nvidia0",modelName="NVIDIA A100-SXM4-40GB",Hostname="dgx",DCGM_FI_DRIVER_VERSION="535.129.03"} 0.188
DCGM_FI_PROF_DRAM_ACTIVE{gpu="1",UUID="GPU-b850f46d-d5ea-c752-ddf3-c4453e44d3f7",pci_bus_id="00000000:0F:00.0",device="nvidia1",modelName="NVIDIA A100-SXM4-40GB",GPU_I_PROFILE="3g.20gb",GPU_I_ID="1",Hostname="dgx",DCGM_FI_DRIVER_VERSION="535.129.03"} 0.05
`

func row(uuid, more string, value any) string {
	return fmt.Sprintf("DCGM_FI_PROF_SM_ACTIVE{UUID=%q%s} %v\n", uuid, more, value)
}

func TestParse(t *testing.T) {
	for name, tt := range map[string]struct {
		page string
		want map[Key]Reading
	}{
		"a page": {page, map[Key]Reading{
			{gpu0, -1}: {0.71354, 0.312, 0.188},
			{gpu1, 1}:  {0.25, 0.25, 0.05},
			{gpu1, 2}:  {0.5, 0.5, 0.5},
		}},
		"empty":                  {"", map[Key]Reading{}},
		"other figures":          {"go_goroutines 12\n", map[Key]Reading{}},
		"a row per pod":          {row(gpu0, `,pod="a"`, 0.2) + row(gpu0, `,pod="b"`, 0.4) + row(gpu0, `,pod="c"`, 0.3), map[Key]Reading{{gpu0, -1}: {0.4, 0.4, 0.4}}},
		"no UUID":                {"DCGM_FI_PROF_SM_ACTIVE{gpu=\"0\"} 0.5\n", map[Key]Reading{}},
		"an instance of no name": {row(gpu0, `,GPU_I_ID="x"`, 0.2) + row(gpu0, `,GPU_I_ID="99999999999999999999"`, 0.2), map[Key]Reading{}},
		"no instance":            {row(gpu0, `,GPU_I_ID=""`, 0.2), map[Key]Reading{{gpu0, -1}: {0.2, 0.2, 0.2}}},
		"cannot be":              {row(gpu0, "", -0.1) + row(gpu1, "", 71), map[Key]Reading{}},
		"not a number":           {row(gpu0, "", "NaN") + row(gpu1, "", "+Inf"), map[Key]Reading{}},
		"a little above 1":       {row(gpu0, "", 1.001), map[Key]Reading{{gpu0, -1}: {1, 1, 1}}},
		"a counter":              {"# TYPE DCGM_FI_PROF_SM_ACTIVE counter\n" + row(gpu0, "", 0.5), map[Key]Reading{{gpu0, -1}: {0.5, 0.5, 0.5}}},
		"a summary":              {"# TYPE DCGM_FI_PROF_SM_ACTIVE summary\n" + row(gpu0, "", 0.5), map[Key]Reading{}},
	} {
		got, err := Parse(strings.NewReader(tt.page))
		if err != nil || !maps.Equal(got, tt.want) {
			t.Errorf("%s: got %v, %v; want %v", name, got, err, tt.want)
		}
	}
	for _, bad := range []string{"<html>", "DCGM_FI_PROF_SM_ACTIVE{", "a b c\n", row(gpu0, "", "much"), "#HELP A \n{}"} {
		if got, err := Parse(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(page)
	f.Add(row(gpu0, `,GPU_I_ID="3"`, "NaN"))
	f.Add("# TYPE DCGM_FI_PROF_SM_ACTIVE histogram\nDCGM_FI_PROF_SM_ACTIVE_bucket{UUID=\"x\",le=\"1\"} 1\n")
	f.Fuzz(func(t *testing.T, page string) {
		got, err := Parse(strings.NewReader(page))
		if err != nil {
			return
		}
		for k, r := range got {
			for _, v := range []float64{r.SMACT, r.SMOCC, r.DRAMA} {
				if !(v >= 0 && v <= 1) || k.UUID == "" || k.Instance < -1 {
					t.Fatalf("%v: %v", k, r)
				}
			}
		}
	})
}

// fixed returns a page that is not fetched in the background.
func fixed(url string, now *time.Time) *Page {
	p := &Page{url: url, client: &http.Client{}, log: zerolog.Nop(), now: func() time.Time { return *now }}
	return p
}

func TestFetch(t *testing.T) {
	var answer atomic.Pointer[func(http.ResponseWriter)]
	set := func(f func(http.ResponseWriter)) { answer.Store(&f) }
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { (*answer.Load())(w) }))
	defer s.Close()
	now := time.Unix(1_800_000_000, 0)
	p := fixed(s.URL, &now)

	set(func(w http.ResponseWriter) { io.WriteString(w, page) })
	p.update(t.Context())
	if smact, smocc, drama, ok := p.Activity(gpu0, -1); !ok || smact != 0.71354 || smocc != 0.312 || drama != 0.188 || p.Err() != nil {
		t.Errorf("got %v %v %v %v, %v", smact, smocc, drama, ok, p.Err())
	}
	if smact, _, _, ok := p.Activity(gpu1, 2); !ok || smact != 0.5 {
		t.Errorf("instance: %v %v", smact, ok)
	}
	if _, _, _, ok := p.Activity(gpu1, -1); ok {
		t.Error("a card with MIG has no activity of its own")
	}
	for want, f := range map[string]func(http.ResponseWriter){
		"503":                       func(w http.ResponseWriter) { w.WriteHeader(503) },
		"has no DCGM_FI_PROF":       func(w http.ResponseWriter) { io.WriteString(w, "up 1\n") },
		"text format parsing error": func(w http.ResponseWriter) { io.WriteString(w, "<html>\n") },
		"is longer than": func(w http.ResponseWriter) {
			for range maxPage/len(page) + 2 {
				io.WriteString(w, "# "+strings.Repeat("x", len(page))+"\n")
			}
		},
		"EOF": func(w http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		set(f)
		p.update(t.Context())
		if p.Err() == nil || !strings.Contains(p.Err().Error(), want) {
			t.Errorf("want %q: %v", want, p.Err())
		}
		if _, _, _, ok := p.Activity(gpu0, -1); !ok {
			t.Errorf("%q: the last reading is not old yet", want)
		}
	}
	now = now.Add(stale + time.Second)
	if _, _, _, ok := p.Activity(gpu0, -1); ok {
		t.Error("an old reading is used")
	}
	set(func(w http.ResponseWriter) { io.WriteString(w, page) })
	p.update(t.Context())
	if _, _, _, ok := p.Activity(gpu0, -1); !ok || p.Err() != nil {
		t.Errorf("not read again: %v", p.Err())
	}
	s.Close()
	p.update(t.Context())
	if p.Err() == nil {
		t.Error("nobody listens, and no error")
	}
}

// TestWatch checks that the page is fetched in the background, and that an exporter that hangs
// delays nothing.
func TestWatch(t *testing.T) {
	asked := make(chan struct{}, 100)
	hang := make(chan struct{})
	var n atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		if n.Add(1) > 2 {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
			return
		}
		io.WriteString(w, page)
	}))
	defer s.Close()
	defer close(hang)
	p := Watch(s.URL, time.Millisecond, zerolog.Nop())
	for range 3 {
		<-asked
	}
	if _, _, _, ok := p.Activity(gpu0, -1); !ok {
		t.Error("not read")
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
