package environment

import (
	"os"
	"strings"
	"testing"
	"time"
)

const good = Mark + `{"context": 629145600, "cudnn": 20971520, "cublas": 8519680, "spread": 2097152, "torch": "2.11", "cuda": "13.0"}`

func TestReadMeasured(t *testing.T) {
	m, err := ReadMeasured([]string{"a warning of a library", good, "the end"})
	if err != nil || m.Context != 600*mib || m.CuDNN != 20*mib || m.CuBLAS != 8519680 || m.NCCL != 0 {
		t.Fatalf("%+v, %v", m, err)
	}
	for text, want := range map[string]string{
		"nothing":                                           "printed no figures",
		Mark + "{":                                          "the program's figures",
		Mark + `{"error": "no PyTorch here"}`:               "no PyTorch here",
		Mark + `{"context": 5}`:                             "a context of 5 bytes is not possible",
		Mark + `{"context": 99999999999999}`:                "is not possible",
		Mark + `{"context": 629145600, "cublas": -1}`:       "-1 and 0 bytes for cuDNN, cuBLAS and NCCL are not possible",
		Mark + `{"context": 629145600, "spread": 99999999}`: "two measurements differ by 95 MiB: somebody else used the GPU meanwhile; try again when it is idle",
	} {
		if _, err := ReadMeasured(strings.Split(text, "\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestKept: the measurement is used for the same GPUs, and replaces nothing else.
func TestKept(t *testing.T) {
	dir, cards := t.TempDir(), []string{"H100", "A100", "H100"}
	if _, ok, err := Kept(dir, cards); ok || err != nil {
		t.Errorf("before: %v, %v", ok, err)
	}
	m, err := ReadMeasured([]string{good})
	if err != nil {
		t.Fatal(err)
	}
	base, err := Named("")
	if err != nil {
		t.Fatal(err)
	}
	e, err := m.Of(base, cards, 80<<30, time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC))
	if err != nil || e.Name != "here-2026-11-23-0800" || e.Forward != base.Forward || e.Capacity != 80<<30 || e.ContextFor(true) != 620*mib {
		t.Fatalf("%+v, %v", e, err)
	}
	if _, err := m.Of(base, cards, 1, time.Now()); err == nil {
		t.Error("a GPU of one byte")
	}
	if err := Keep(dir, e); err != nil {
		t.Fatal(err)
	}
	got, ok, err := Kept(dir, []string{"A100", "H100"})
	if err != nil || !ok || got.Environment != e.Environment || got.Fitted != e.Fitted {
		t.Errorf("%+v, %v, %v", got, ok, err)
	}
	if _, ok, err := Kept(dir, []string{"A100"}); ok || err != nil {
		t.Errorf("of other GPUs: %v, %v", ok, err)
	}
	for _, body := range []string{"", "[]", `[{"name": ""}]`, "[" + strings.Repeat("[", 10000)} {
		if err := os.WriteFile(keptIn(dir), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := Kept(dir, cards); ok || err == nil || !strings.Contains(err.Error(), "carma doctor --calibrate writes it anew") {
			t.Errorf("%.20q: %v, %v", body, ok, err)
		}
	}
}
